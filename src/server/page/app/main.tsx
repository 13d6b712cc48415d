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
addEventListener("popstate", () => state.attempt(() => state.open(location.hash)));
state.start(location.hash);
render(<App state={state} />, document.getElementById("app")!);
