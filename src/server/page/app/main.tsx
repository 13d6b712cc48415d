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

/** Opens the place of the address; takes a key, as `preamp serve` prints it, out of it and of the history. */
function openAddress(open: (place: string) => unknown): void {
  const [, key] = /^#key=(.+)$/.exec(location.hash) ?? [];
  if (key === undefined) open(location.hash);
  else {
    history.replaceState(null, "", location.pathname);
    state.useKey(key, true);
  }
}

addEventListener("popstate", () => openAddress((place) => state.attempt(() => state.open(place))));
openAddress((place) => state.start(place));
render(<App state={state} />, document.getElementById("app")!);
