/** The runs and sessions of the server: to open, to compare, to delete. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { hasEnded, type Run } from "preamp/client";
import type { AppState } from "../state/app_state.ts";
import { History, nameOf, type SessionRow, titleOf } from "../state/history.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Ago, Status, STATUSES } from "../ui/facts.tsx";
import { dollars, tokens } from "../ui/units.ts";
import { visible } from "../ui/text.tsx";

/** Milliseconds after the last key until a search starts. */
const SEARCH_MS = 200;

/** The dialog with both lists. */
export function HistoryDialog({ state }: { state: AppState }) {
  const history = useMemo(() => new History(state.client), []);
  const [kind, setKind] = useState<"runs" | "sessions">("runs");
  useEffect(() => void state.attempt(() => history.load()), []);
  const [typed, setTyped] = useState("");
  const list = history[kind];
  useEffect(() => {
    if (typed === list.query.value) return;
    const timer = setTimeout(() => state.attempt(() => list.search(typed)), SEARCH_MS);
    return () => clearTimeout(timer);
  }, [typed, list]);
  const close = () => state.overlay.value = null;
  const waiting = list.query.value === "" ? history.waiting.value : [];
  const others = history.runs.items.value.filter(({ id }) => !waiting.some((run) => run.id === id));
  return (
    <Dialog label="History" onClose={close}>
      <div class="row wrap">
        <h2>History</h2>
        {(["runs", "sessions"] as const).map((name) => (
          <Button
            aria-pressed={kind === name}
            onClick={() => setKind(name)}
            key={name}
          >
            {name}
          </Button>
        ))}
        {kind === "runs" && (
          <select
            aria-label="Status"
            value={history.status.value}
            onChange={({ currentTarget: { value } }) => state.attempt(() => history.filter(value))}
          >
            <option value="">any status</option>
            {STATUSES.map((status) => (
              <option value={status} key={status}>{status.replace("_", " ")}</option>
            ))}
          </select>
        )}
        <input
          type="search"
          class="spread"
          aria-label={`Search the ${kind} by their prompts`}
          placeholder="search by prompt"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Button onClick={close}>Close</Button>
      </div>
      {state.problem.value && <p class="failed" role="alert">{state.problem.value}</p>}
      {kind === "runs" && waiting.length > 0 && (
        <>
          <h3 class="waiting">◷ Waiting for you</h3>
          <ul class="history">
            {waiting.map((run) => <RunRow state={state} history={history} run={run} key={run.id} />)}
          </ul>
          <h3>Others</h3>
        </>
      )}
      <ul class="history" aria-label={kind}>
        {kind === "runs"
          ? others.map((run) => <RunRow state={state} history={history} run={run} key={run.id} />)
          : history.sessions.items.value.map((session) => (
            <SessionItem state={state} history={history} session={session} key={session.id} />
          ))}
      </ul>
      {list.items.value.length === 0 && (
        <p class="muted">
          {list.query.value === "" ? "There is nothing here." : "No prompt has these words."}
        </p>
      )}
      {list.cursor.value !== null && (
        <Button onClick={() => state.attempt(() => list.load(true))}>More</Button>
      )}
    </Dialog>
  );
}

function RunRow({ state, history, run }: { state: AppState; history: History; run: Run }) {
  const { id, status, usage, plan_hash, created_at, forked_from } = run;
  const plan = state.plan.plans.value.find((plan) => plan.plan_hash === plan_hash)?.name;
  const other = forked_from?.run_id ?? state.current.value?.id ?? id;
  const open = (action: () => Promise<void>) =>
    state.attempt(async () => {
      await action();
      state.overlay.value = null;
    });
  const remove = async () => {
    await history.deleteRun(id);
    state.closeDeleted(id);
  };
  return (
    <Row
      title={titleOf(run)}
      onOpen={() => open(() => state.openRun(id))}
      onDelete={hasEnded(status) ? () => state.attempt(remove) : null}
      what="run with its log"
      more={other !== id && (
        <Button plain onClick={() => open(() => state.compare(other, id))}>
          {forked_from ? "compare with origin" : "compare with open run"}
        </Button>
      )}
    >
      <Status status={status} />
      <Ago time={String(created_at)} />
      {forked_from && <span>from entry {forked_from.seq}</span>}
      {plan && <span>plan: {plan}</span>}
      <span>{tokens(usage.total_tokens)} tokens</span>
      {usage.cost_usd !== null && <span>{dollars(usage.cost_usd)}</span>}
    </Row>
  );
}

function SessionItem({ state, history, session }: {
  state: AppState;
  history: History;
  session: SessionRow;
}) {
  const { id, status, run_count, last_activity } = session;
  const open = () =>
    state.attempt(async () => {
      await state.openSession(id);
      state.overlay.value = null;
    });
  const remove = async () => {
    await history.deleteSession(id);
    state.closeDeleted(id);
  };
  return (
    <Row
      title={nameOf(session)}
      onOpen={open}
      onDelete={() => state.attempt(remove)}
      what="session with its runs and logs"
    >
      <Status status={status.status} />
      <Ago time={last_activity} />
      <span>{run_count} {run_count === 1 ? "run" : "runs"}</span>
      <span>{tokens(status.total_input_tokens + status.total_output_tokens)} tokens</span>
      {status.cost_usd !== undefined && <span>{dollars(status.cost_usd)}</span>}
    </Row>
  );
}

function Row({ title, what, onOpen, onDelete, more, children }: {
  title: string;
  what: string;
  onOpen: () => void;
  onDelete: (() => void) | null;
  more?: ComponentChildren;
  children: ComponentChildren;
}) {
  const [asks, setAsks] = useState(false);
  return (
    <li>
      <Button class="plain title" dir="auto" onClick={onOpen}>{visible(title)}</Button>
      <div class="row wrap muted">
        {children}
        <span class="spread" />
        {more}
        {asks
          ? (
            <>
              <span class="failed">Delete the {what}? Nothing brings it back.</span>
              <Button onClick={onDelete!}>Delete</Button>
              <Button onClick={() => setAsks(false)}>Keep</Button>
            </>
          )
          : onDelete && (
            <Button plain aria-label={`Delete ${title}`} onClick={() => setAsks(true)}>
              delete …
            </Button>
          )}
      </div>
    </li>
  );
}
