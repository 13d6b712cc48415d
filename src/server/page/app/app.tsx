/** The page: a line of facts, three panes, and what opens above them. */
import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary } from "preact/hooks";
import { onKey, toggleTheme } from "./overlays/actions.ts";
import { Compare } from "./compare/compare.tsx";
import { HistoryDialog } from "./overlays/history.tsx";
import { KeysDialog } from "./overlays/keys_dialog.tsx";
import { Palette } from "./overlays/palette.tsx";
import { WhatIfBar } from "./compare/what_if.tsx";
import { Conversation } from "./conversation/conversation.tsx";
import { Questions } from "./conversation/questions.tsx";
import { LogPane } from "./log/log_pane.tsx";
import { PlanPane } from "./plan/plan_pane.tsx";
import { planLabel } from "./plan/words.ts";
import { type AppState, type Pane, PANES } from "./state/app_state.ts";
import { Button } from "./ui/button.tsx";
import { Elapsed, Status } from "./ui/facts.tsx";
import { dollars } from "./ui/units.ts";
import { KeyDialog } from "./overlays/key_dialog.tsx";

const FIND_KEY = /Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K";

/** Milliseconds after which the runs that wait elsewhere are counted again. */
const WAITING_MS = 15_000;

/** The page. */
export function App({ state }: { state: AppState }) {
  const compared = state.compared.value;
  const overlay = state.overlay.value;
  const theme = state.theme.value;
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(state, event);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
  useEffect(() => {
    const count = () => document.hidden || state.countWaiting();
    const timer = setInterval(count, WAITING_MS);
    return () => clearInterval(timer);
  }, []);
  const { plan, log } = state.widths.value;
  const folded = state.plan_folded.value && state.what_if.value === null;
  useEffect(() => { // what had the focus may be gone with the plan
    if (folded && document.activeElement === document.body) document.getElementById("prompt")?.focus();
  }, [folded]);
  useEffect(() => {
    const { dataset } = document.documentElement;
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
  }, [theme]);
  return (
    <div class="shell">
      <Top state={state} />
      <div>
        <Banners state={state} />
        <WhatIfBar state={state} />
        <nav>
          <Tabs state={state} />
        </nav>
        {state.pane.value !== "conversation" && (
          <div class="over-tabs">
            <Questions state={state} />
          </div>
        )}
      </div>
      <main
        class={`panes${compared ? " comparing" : ""}${folded ? " folded" : ""}`}
        style={{ "--plan": `${plan}%`, "--log": `${log}%` }}
      >
        <PaneBox state={state} name="plan" title="Plan">
          <PlanPane state={state} />
        </PaneBox>
        <div class="fold">
          <Button
            plain
            aria-expanded={!folded}
            aria-controls="pane-plan"
            aria-label={folded ? "Open the plan" : "Fold the plan away"}
            title={folded ? "Open the plan" : "Fold the plan away"}
            onClick={() => state.foldPlan(!folded)}
          >
            {folded ? "▸" : "◂"}
          </Button>
          {!folded && <Divider state={state} pane="plan" />}
        </div>
        <PaneBox state={state} name="conversation" title="Conversation">
          {compared ? <Compare state={state} compared={compared} /> : <Conversation state={state} />}
        </PaneBox>
        <div class="fold">
          <Divider state={state} pane="log" />
        </div>
        <PaneBox state={state} name="log" title="Log">
          <LogPane state={state} />
        </PaneBox>
      </main>
      {overlay === "key" && <KeyDialog state={state} />}
      {overlay === "history" && <HistoryDialog state={state} />}
      {overlay === "palette" && <Palette state={state} />}
      {overlay === "keys" && <KeysDialog state={state} />}
      <div class="hidden-text" role="status" aria-live="polite">{state.announcement}</div>
    </div>
  );
}

function Top({ state }: { state: AppState }) {
  const view = state.current.value;
  const run = view?.run.value;
  const waiting = state.waiting_elsewhere.value;
  return (
    <header class="top">
      <h1>preamp</h1>
      <span class="wide muted">
        plan: {planLabel(state.plan.name.value)}
        {state.plan.name.value !== null && state.plan.is_changed.value && ", changed"}
      </span>
      {view && <Status status={view.status.value} />}
      {view?.started.value && (
        <span class="wide">
          <Elapsed from={view.started.value} to={view.ended.value} />
        </span>
      )}
      {run && (
        <span class="wide muted">
          {dollars(run.usage.cost_usd ?? 0)} of{" "}
          {dollars(String((run.limits as { max_cost_usd?: string }).max_cost_usd))}
        </span>
      )}
      <span class="spread" />
      <Button plain onClick={() => state.overlay.value = "history"}>
        history {waiting > 0 && (
          <span class="badge" title="runs that wait for you elsewhere">
            ◷ {waiting} <span class="hidden-text">{waiting === 1 ? "waits" : "wait"} for you elsewhere</span>
          </span>
        )}
      </Button>
      <a class="wide" href="docs">docs</a>
      <Button plain aria-label={`${FIND_KEY}: find`} onClick={() => state.overlay.value = "palette"}>
        {FIND_KEY}
      </Button>
      <Button plain aria-label="Light or dark" onClick={() => toggleTheme(state)}>
        ◐
      </Button>
    </header>
  );
}

/** Between two panes: moved with the pointer or the arrow keys. */
function Divider({ state, pane }: { state: AppState; pane: "plan" | "log" }) {
  const width = state.widths.value[pane];
  const sign = pane === "plan" ? 1 : -1;
  const onPointerMove = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const share = 100 * event.clientX / innerWidth;
    state.setWidth(pane, pane === "plan" ? share : 100 - share);
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of the ${pane}`}
      aria-valuenow={width}
      aria-valuemin={0}
      aria-valuemax={100}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={onPointerMove}
      onKeyDown={(event) => {
        const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        state.setWidth(pane, width + sign * step);
      }}
    />
  );
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
      {state.needs_key.value && state.overlay.value !== "key" && (
        <div class="banner waiting" role="status">
          <p>This server asks for an API key.</p>
          <Button onClick={() => state.overlay.value = "key"}>Enter the key</Button>
        </div>
      )}
      {problem && state.overlay.value !== "key" && (
        <div class="banner failed" role="alert">
          <p>{problem}</p>
          <Button plain onClick={() => state.problem.value = null}>close</Button>
        </div>
      )}
    </>
  );
}

function Tabs({ state }: { state: AppState }) {
  return (
    <div class="tabs" role="tablist" aria-label="Panes">
      {PANES.map((pane) => (
        <Button
          role="tab"
          id={`tab-${pane}`}
          aria-selected={state.pane.value === pane}
          aria-controls={`pane-${pane}`}
          onClick={() => state.pane.value = pane}
          key={pane}
        >
          {pane}
        </Button>
      ))}
    </div>
  );
}

/** A pane. Data that it cannot draw, such as that of a module of one's own, leaves the others as they are. */
function PaneBox({ state, name, title, children }: {
  state: AppState;
  name: Pane;
  title: string;
  children: ComponentChildren;
}) {
  const [error, reset] = useErrorBoundary();
  return (
    <section id={`pane-${name}`} class={state.pane.value === name ? "pane shown" : "pane"} aria-label={title}>
      {error === undefined ? children : (
        <p class="empty" role="alert">
          {title} cannot be shown: {String(error)} <Button onClick={reset}>Try again</Button>
        </p>
      )}
    </section>
  );
}
