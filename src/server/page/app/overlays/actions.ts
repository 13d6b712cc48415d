/** What the keys and the palette do. */
import { type AppState, PANES } from "../state/app_state.ts";
import { nameOf, type SessionRow, titleOf } from "../state/history.ts";
import { search, type SearchSection } from "../../../../docs/search.ts";
import type { Command } from "../state/palette.ts";
import { hasEnded } from "preamp/client";
import type { RunView } from "../state/run_view.ts";

/** An action of the page; `keys` start it while the user is not typing. */
interface Action {
  readonly keys: string;
  readonly label: string;
  /** Whether it can be done now. Default: always. */
  readonly when?: (state: AppState) => boolean;
  readonly run: (state: AppState) => unknown;
}

/** All actions, in the order of the list of keys. */
export const ACTIONS: readonly Action[] = [
  {
    keys: "Ctrl K",
    label: "find runs, sessions, plans, docs",
    run: (state) => state.overlay.value = "palette",
  },
  ...PANES.map((pane, index) => ({
    keys: String(index + 1),
    label: `go to the ${pane}`,
    run: (state: AppState) => {
      state.pane.value = pane;
      if (pane === "plan") state.foldPlan(false);
      focusOn(`#pane-${pane} :is(textarea, [tabindex="0"])`);
    },
  })),
  {
    keys: "/",
    label: "search the log",
    run: (state) => {
      state.pane.value = "log";
      state.log_view.value = "entries";
      focusOn("#pane-log input");
    },
  },
  {
    keys: "a",
    label: "go to the question that waits for an answer",
    when: (state) => state.open_questions.value.length > 0,
    run: () => focusOn(".question button"),
  },
  { keys: "n", label: "new conversation", run: (state) => state.newConversation() },
  { keys: "h", label: "history of runs and sessions", run: (state) => state.overlay.value = "history" },
  {
    keys: "x",
    label: "stop the run; twice: a running tool too",
    when: (state) => activeRun(state) !== undefined,
    run: (state) => state.stop(activeRun(state)),
  },
  { keys: "t", label: "light or dark", run: toggleTheme },
  { keys: "?", label: "the keys", run: (state) => state.overlay.value = "keys" },
];

/** Returns the shown run that has not ended, the newest first. */
function activeRun({ shown }: AppState): RunView | undefined {
  return shown.value.findLast(({ status }) => !hasEnded(status.value));
}

/** Moves the focus once the pane is shown. */
function focusOn(target: string): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(target)?.focus());
}

/** Changes between light and dark; the colours of the system are followed again when they are chosen. */
export function toggleTheme(state: AppState): void {
  const { matches: is_system_dark } = matchMedia("(prefers-color-scheme: dark)");
  const is_dark = state.theme.value === null ? is_system_dark : state.theme.value === "dark";
  state.setTheme(is_dark !== is_system_dark ? null : is_dark ? "light" : "dark");
}

/**
 * Does what a key is for; keys without Ctrl are left to what the user types into, which Escape leaves, and to
 * open dialogs.
 */
export function onKey(state: AppState, event: KeyboardEvent): void {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const is_typing = target instanceof HTMLElement &&
    target.closest("input, textarea, select") !== null;
  if (key === "Escape" && !event.isComposing && target instanceof HTMLTextAreaElement) target.blur();
  const keys = (ctrlKey || metaKey) && key.toLowerCase() === "k" ? "Ctrl K" : key;
  if (altKey || (keys === key && (ctrlKey || metaKey || is_typing))) return;
  if (document.querySelector("dialog") !== null) return; // open, with the focus anywhere
  const action = ACTIONS.find((action) => action.keys === keys && (action.when?.(state) ?? true));
  if (!action) return;
  event.preventDefault();
  action.run(state);
}

/** Returns the actions that can be done now, as commands. */
export function actionCommands(state: AppState): Command[] {
  return ACTIONS.filter(({ keys, when }) => keys !== "Ctrl K" && (when?.(state) ?? true)).map((
    { keys, label, run },
  ) => ({ kind: "action", label, hint: keys, run: () => run(state) }));
}

/** Most runs and sessions that the palette knows. */
const RECENT = 50;

/** Resolves to what can be opened: plans, recent runs and sessions. */
export async function loadCommands(state: AppState): Promise<Command[]> {
  const { client, plan } = state;
  const [runs, sessions] = await Promise.all([
    client.listRuns({ limit: RECENT }),
    client.listSessions({ limit: RECENT }),
  ]);
  return [
    ...runs.data.map((run): Command => ({
      kind: "run",
      label: titleOf(run),
      hint: `${run.status.replace("_", " ")} ${run.id}`,
      run: () => state.openRun(run.id),
    })),
    ...plan.plans.value.map(({ name, description }): Command => ({
      kind: "plan",
      label: name,
      hint: description ?? "",
      run: () => plan.choose(name),
    })),
    // a session with one run is that run
    ...(sessions.data as readonly SessionRow[]).filter(({ run_count }) => run_count > 1).map((
      session,
    ): Command => ({
      kind: "session",
      label: nameOf(session),
      hint: `${session.run_count} runs ${session.id}`,
      run: () => state.openSession(session.id),
    })),
  ];
}

/** Sections of the documentation that the palette shows. */
const MAX_SECTIONS = 6;
let sections: Promise<readonly SearchSection[]> | undefined;

/** Resolves to the sections of the documentation that answer a query, as its own search finds them. */
export async function docsCommands(state: AppState, query: string): Promise<Command[]> {
  if (query.trim() === "") return [];
  sections ??= state.readText("docs/search.json").then((text) => JSON.parse(text));
  sections.catch(() => sections = undefined);
  return search(await sections, query, MAX_SECTIONS).map(({ section: { page, heading, anchor } }) => ({
    kind: "docs",
    label: heading,
    hint: page,
    run: () => location.assign(`docs/${page}${anchor === "" ? "" : `#${anchor}`}`),
  }));
}
