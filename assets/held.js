// Stands at the address of a large script of Streamlit's (HELD in first_files.py) and fetches it, unchanged, when what it draws
// is in sight, or when the page has come to rest: what cannot be seen yet does not hold up what can be seen.
const LONGEST = 10000;  // ms
const begun = performance.now();

const isInSight = (one) => {
  const { top, bottom, width } = one.getBoundingClientRect();
  return width > 0 && top < innerHeight && bottom > 0;
};
const isAtRest = () => !document.getElementById("first-picture")
  && document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";
const isWanted = () => document.hidden || performance.now() - begun > LONGEST || isAtRest()
  || [...document.querySelectorAll("PLACE")].some(isInSight);

// Looks at every second frame: in between, scripts that have come have drawn what stood empty for them.
const turn = () => Promise.race([
  new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  new Promise((resolve) => setTimeout(resolve, 500)),  // a tab that nobody looks at has no frames
]);
do await turn(); while (!isWanted());
const whole = await import("./FILE?whole");
