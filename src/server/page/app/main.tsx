/** The entry of the page. */
import { render } from "preact";
import { App } from "./app.tsx";
import { AppState } from "./state/app_state.ts";
import { tabStorage } from "./state/tab_storage.ts";

const state = new AppState({
  url: new URL(".", document.baseURI).href,
  storage: tabStorage(() => sessionStorage),
  nextFrame: (run) => document.hidden ? setTimeout(run, 100) : requestAnimationFrame(run),
  setPlace: (place) => {
    if (location.hash !== place) history.pushState(null, "", place || location.pathname);
  },
});
/** Takes the key from the address, as `preamp serve` prints it, and out of the history of the browser. */
function keyInAddress(): string | undefined {
  const [, key] = /^#key=(.+)$/.exec(location.hash) ?? [];
  if (key !== undefined) history.replaceState(null, "", location.pathname);
  return key;
}

addEventListener("popstate", () => {
  const key = keyInAddress();
  if (key === undefined) state.attempt(() => state.open(location.hash));
  else state.useKey(key, true);
});
const key = keyInAddress();
if (key === undefined) state.start(location.hash);
else state.useKey(key, true);
render(<App state={state} />, document.getElementById("app")!);
