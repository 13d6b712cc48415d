/** The right pane: the log of a run, and what it used. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type AppState, LOG_VIEWS } from "../state/app_state.ts";
import { hasEnded } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { Calls } from "./calls.tsx";
import { ContextFill } from "./context_fill.tsx";
import { EntryDetail } from "./entry_detail.tsx";
import { Limits } from "./limits.tsx";
import { type Kind, KINDS, LogRows } from "./rows.ts";
import { SentRequests } from "./sent.ts";
import { SentDialog } from "./sent_dialog.tsx";
import { Timeline } from "./timeline.tsx";
import { Trace } from "./trace.tsx";
import { Button } from "../ui/button.tsx";

/** Milliseconds after the last key until a search starts. */
const SEARCH_MS = 150;

/** The log pane. */
export function LogPane({ state }: { state: AppState }) {
  const [kind, setKind] = useState<Kind>("all");
  const [typed, setTyped] = useState("");
  const [query, setQuery] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQuery(typed), SEARCH_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const view = state.current.value;
  const shown = state.log_view.value;
  return (
    <>
      <header>
        <h2 class="hidden-text">Log</h2>
        {LOG_VIEWS.map((name) => (
          <Button
            aria-pressed={shown === name}
            onClick={() => state.log_view.value = name}
            key={name}
          >
            {name}
          </Button>
        ))}
        {shown === "entries" && (
          <>
            <select
              aria-label="Kind of entries"
              value={kind}
              onChange={(event) => setKind(event.currentTarget.value as Kind)}
            >
              {KINDS.map((name) => <option key={name}>{name}</option>)}
            </select>
            <input
              type="search"
              class="spread"
              aria-label="Search the log"
              placeholder="search"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </>
        )}
      </header>
      {view ? <RunLog state={state} view={view} kind={kind} query={query} key={view.id} /> : (
        <p class="empty">
          What a run does appears here: its model calls and tools, and each entry of its log.
        </p>
      )}
    </>
  );
}

function RunLog({ state, view, kind, query }: { state: AppState; view: RunView; kind: Kind; query: string }) {
  const rows = useMemo(() => new LogRows(view, kind, query), [kind, query]);
  useEffect(() => rows.follow(), [rows]);
  const sent = useMemo(() => new SentRequests(state.client, view.id), []);
  const [open, setOpen] = useState(false);
  const [call, setCall] = useState<number | null>(null);
  const seq = state.selected_seq.value;
  const close = () => {
    setOpen(false);
    document.querySelector<HTMLElement>(".timeline, .trace")?.focus();
  };
  const openCall = (seq: number) => {
    state.pane.value = "log"; // a dialog in a pane that a narrow screen hides would be invisible
    setCall(seq);
  };
  const fork = (from: number) => {
    setCall(null);
    state.beginWhatIf(view, from);
  };
  return (
    <>
      {state.log_view.value === "trace"
        ? (
          <Trace
            view={view}
            onCall={openCall}
            onEntry={(seq) => {
              state.selected_seq.value = seq;
              setOpen(true);
            }}
          />
        )
        : (
          <Timeline
            state={state}
            view={view}
            rows={rows}
            filtered={kind !== "all" || query !== ""}
            onOpen={() => setOpen(true)}
            onClose={close}
          />
        )}
      {open && seq !== null
        ? (
          <EntryDetail
            view={view}
            rows={rows}
            seq={seq}
            onClose={close}
            onCall={openCall}
            onFork={fork}
          />
        )
        : (
          <div class="log-facts">
            <Section title="Limits">
              <Limits state={state} view={view} />
            </Section>
            <Section title="Context">
              <ContextFill view={view} />
            </Section>
            <Section title="Calls">
              <Calls view={view} onOpen={openCall} />
            </Section>
          </div>
        )}
      {hasEnded(view.status.value) && <Replay state={state} view={view} />}
      {call !== null && (
        <SentDialog
          view={view}
          sent={sent}
          seq={call}
          onCall={setCall}
          onFork={fork}
          onClose={() => setCall(null)}
        />
      )}
    </>
  );
}

function Section({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <details class="section" open>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** Replays a run on its recorded answers, and says whether the agent does the same. */
function Replay({ state, view }: { state: AppState; view: RunView }) {
  const [result, setResult] = useState<{ equal?: boolean; message?: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const replay = async () => {
    setBusy(true);
    setResult(await state.replay(view));
    setBusy(false);
  };
  return (
    <div class="replay" role="group" aria-label="Replay">
      <Button disabled={busy} onClick={replay}>{busy ? "Replaying …" : "Replay"}</Button>
      <p role="status">
        {result === null
          ? <span class="muted">again, on the recorded answers</span>
          : result.equal
          ? <span class="done">✓ equal: same calls, status and text</span>
          : <span class="failed">✗ different: {result.message}</span>}
      </p>
    </div>
  );
}
