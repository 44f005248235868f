// Draws the first picture, and takes it away when the live one is there, when something went wrong, or after a while.
const picture = document.getElementById("first-picture");
const app = document.getElementById("root");
const LONGEST = 20000;  // ms; the page below says what goes on
const STILL = 4;  // frames in which the page below has not become longer or shorter
const FAILED = "[data-testid=stException], [data-testid=stAlert], [role=dialog]";

const draw = () => walkthrough({
  data: JSON.parse(document.getElementById("first-picture-data").textContent),
  parentElement: picture.shadowRoot.querySelector(".picture"),
  setStateValue: () => {},
});

const isLive = () => {
  const page = document.querySelector("[data-testid=stApp][data-test-script-state=notRunning] .st-key-page-body");
  const place = page?.querySelector(".st-key-walk");
  for (const one of place?.querySelectorAll("*") ?? []) if (one.shadowRoot?.querySelector(".vf-walkthrough[data-scene]")) return true;
  return Boolean(page?.querySelector(FAILED) || document.querySelector("[role=dialog]"));
};

const end = () => {
  app.style.opacity = app.style.visibility = "";
  picture.remove();
  document.getElementById("first-picture-data").remove();
};

// Once it is live and has come to rest: scripts of boxes may still be on their way.
let [height, still] = [0, 0];
const look = () => {
  const now = document.querySelector("[data-testid=stMain]")?.scrollHeight ?? 0;
  still = isLive() && now === height ? still + 1 : 0;
  height = now;
  if (performance.now() > LONGEST || still === STILL) end();
  else requestAnimationFrame(look);
};

// What is chosen in the app's own settings, as it keeps it; else the system's.
const chosen = (() => {
  try {
    return JSON.parse(localStorage.getItem(`stActiveTheme-${location.pathname}-v2`));
  } catch {
    return null;
  }
})();
if (chosen === "Dark" || chosen === "Light") picture.classList.add(chosen.toLowerCase());
// What is not finished is not seen, and not reached by the keyboard.
app.style.opacity = "0";
app.style.visibility = "hidden";
draw();
document.fonts.load("16px 'Source Sans'").then(draw);
requestAnimationFrame(look);
