// Stands at the address of a large script of Streamlit's (HELD in first_files.py) and fetches it, unchanged, when what it draws
// is in sight, or when the page has come to rest: what cannot be seen yet does not hold up what can be seen.
const LONGEST = 10000;  // ms
const TURNS = 6;  // a fifth of a second, in which an image comes to an empty place, and what is there is painted
const begun = performance.now();

const isInSight = (one) => {
  const { top, bottom, width } = one.getBoundingClientRect();
  return width > 0 && top < innerHeight && bottom > 0;
};
const isAtRest = () => !document.getElementById("first-picture")
  && document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";
let turns = 0;
const isWanted = () => {
  const now = isAtRest() || [...document.querySelectorAll("PLACE")].some(isInSight);
  turns = now ? turns + 1 : 0;
  return turns >= TURNS || document.hidden || performance.now() - begun > LONGEST;
};

// Looks at every second frame: in between, scripts that have come have drawn what stood empty for them.
const turn = () => Promise.race([
  new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  new Promise((resolve) => setTimeout(resolve, 500)),  // a tab that nobody looks at has no frames
]);
do await turn(); while (!isWanted());
const whole = await import("./FILE?whole");
