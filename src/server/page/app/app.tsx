/** The page: a line of facts, three panes, and what opens above them. */
import type { ComponentChildren } from "preact";
import { Conversation } from "./conversation/conversation.tsx";
import { PlanPane } from "./plan/plan_pane.tsx";
import type { AppState, Pane } from "./state/app_state.ts";
import { dollars, Elapsed, Status } from "./ui/facts.tsx";
import { KeyDialog } from "./ui/key_dialog.tsx";

/** The page. */
export function App({ state }: { state: AppState }) {
  return (
    <div class="shell">
      <Top state={state} />
      <div>
        <Banners state={state} />
        <nav>
          <Tabs state={state} />
        </nav>
      </div>
      <main class="panes">
        <PaneBox state={state} name="plan" title="Plan">
          <PlanPane state={state} />
        </PaneBox>
        <PaneBox state={state} name="conversation" title="Conversation">
          <Conversation state={state} />
        </PaneBox>
        <PaneBox state={state} name="log" title="Log">
          <p class="empty">log</p>
        </PaneBox>
      </main>
      {state.overlay.value === "key" && <KeyDialog state={state} />}
      <div class="hidden-text" role="status" aria-live="polite">{state.announcement}</div>
    </div>
  );
}

function Top({ state }: { state: AppState }) {
  const view = state.current.value;
  const run = view?.run.value;
  return (
    <header class="top">
      <h1>preamp</h1>
      <span class="wide muted">plan: {state.plan.name.value ?? "your own"}</span>
      {view && <Status status={view.status.value} />}
      {view?.started.value && <Elapsed from={view.started.value} to={view.ended.value} />}
      {run && (
        <span class="wide muted">
          {dollars(run.usage.cost_usd ?? 0)} of{" "}
          {dollars(String((run.limits as { max_cost_usd?: string }).max_cost_usd))}
        </span>
      )}
      <span class="spread" />
      <a class="wide" href="docs">docs</a>
      <ThemeButton />
    </header>
  );
}

function ThemeButton() {
  const toggle = () => {
    const { documentElement: root } = document;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };
  return <button type="button" class="plain" aria-label="Light or dark" onClick={toggle}>◐</button>;
}

function Banners({ state }: { state: AppState }) {
  const problem = state.problem.value;
  return (
    <>
      {!state.connected.value && (
        <div class="banner waiting" role="status">
          <p>The connection to the server is lost. Trying again …</p>
        </div>
      )}
      {problem && (
        <div class="banner failed" role="alert">
          <p>{problem}</p>
          <button type="button" class="plain" onClick={() => state.problem.value = null}>close</button>
        </div>
      )}
    </>
  );
}

const PANES: readonly Pane[] = ["plan", "conversation", "log"];

function Tabs({ state }: { state: AppState }) {
  return (
    <div class="tabs" role="tablist" aria-label="Panes">
      {PANES.map((pane) => (
        <button
          type="button"
          role="tab"
          id={`tab-${pane}`}
          aria-selected={state.pane.value === pane}
          aria-controls={`pane-${pane}`}
          onClick={() => state.pane.value = pane}
          key={pane}
        >
          {pane}
        </button>
      ))}
    </div>
  );
}

function PaneBox({ state, name, title, children }: {
  state: AppState;
  name: Pane;
  title: string;
  children: ComponentChildren;
}) {
  return (
    <section id={`pane-${name}`} class={state.pane.value === name ? "pane shown" : "pane"} aria-label={title}>
      {children}
    </section>
  );
}
