// Draws what a page shows at first, and takes it away when the page has come to rest, when something went wrong, or after a while.
const cover = document.getElementById("first-picture");
const app = document.getElementById("root");
const data = cover.querySelector("script").textContent;
const LONGEST = data ? 20000 : 15000;  // ms; a page that is shown before it is finished moves
const LONG = 5000;  // ms, after which work that says how far it is shall be seen
const STILL = 4;  // frames in which the page below has not become longer or shorter
const WAITING = "[data-testid=stAppSkeleton], "
  + "[data-testid=stSkeleton]:not([class*=st-key-chart-]:has(.vf-stand-in) *)";  // (in its place stands an image)
const WRONG = "[data-testid=stException], [data-testid=stAlert]";

const draw = () => whole_model_picture({
  data: JSON.parse(data), parentElement: cover.shadowRoot.querySelector(".picture"), setStateValue: () => {},
});

const isDrawn = (page) => [...page.querySelectorAll(".st-key-picture *")]
  .some((one) => one.shadowRoot?.querySelector(".vf-whole[data-made]"));

// (What is folded away has no width: a script for it is held until the page is at rest.)
const isInSight = (one) => {
  const { top, width } = one.getBoundingClientRect();
  return width > 0 && top < innerHeight;
};

const isLive = () => {
  if (document.querySelector("[role=dialog], .st-key-opening")) return true;
  if (performance.now() > LONG && document.querySelector("[data-testid=stProgress]")) return true;
  const page = document.querySelector("[data-testid=stApp][data-test-script-state=notRunning] .st-key-page-body");
  return page && ![...page.querySelectorAll(WAITING)].some(isInSight) && (!data || isDrawn(page) || page.querySelector(WRONG));
};

// What other pages need comes, and is made ready, while nobody waits, but where data are counted.
const fetchMore = ([href, ...others] = cover.dataset.later.split(" ").filter(Boolean)) => {
  if (!href || navigator.connection?.saveData) return;
  const idle = globalThis.requestIdleCallback ?? setTimeout;
  idle(() => import(new URL(`./${href}`, document.baseURI).href).catch(() => {}).then(() => fetchMore(others)));
};

const end = () => {
  app.style.opacity = "";
  app.inert = false;
  cover.remove();
  setTimeout(() => fetchMore(), 2000);
};

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
if (chosen === "Dark" || chosen === "Light") cover.classList.add(chosen.toLowerCase());
// What is not finished is not seen, and not reached by the keyboard.  (Visibility would come back level by level, a frame
// each, where the reader's system asks for less motion: each element takes over its parent's by a transition.)
app.style.opacity = "0";
app.inert = true;
if (data) {
  draw();
  document.fonts.load("16px 'Source Sans'").then(draw);
}
requestAnimationFrame(look);
