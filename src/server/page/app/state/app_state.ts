/**
 * The state of the page and what the user can do: signals that components read, and actions that they call.
 * Knows no DOM; the browser's parts come in as `Host`.
 */
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  type Data,
  hasEnded,
  PreampApiError,
  PreampClient,
  type Question,
  type RunRequest,
} from "preamp/client";
import type { Attachment } from "./attachments.ts";
import { Comparison, type PlanDifference } from "./comparison.ts";
import { sentenceOf } from "./failures.ts";
import { lineDiff } from "./line_diff.ts";
import { type PlanChanges, PlanDraft } from "./plan_draft.ts";
import { type SessionRow, waitingRuns } from "./history.ts";
import type { RunView } from "./run_view.ts";
import { RunViews } from "./run_views.ts";
import type { TextStorage } from "./tab_storage.ts";

/** What the state needs from the browser. */
export interface Host {
  /** Base URL of the server, with its base path. */
  readonly url: string;
  /** Keeps texts until the tab is closed. */
  readonly storage: TextStorage;
  /** Calls a function before the next frame. */
  readonly nextFrame: (run: () => void) => void;
  /** Writes the place in the page's address, such as `#/runs/run_1`. */
  readonly setPlace: (place: string) => void;
  readonly fetch?: typeof fetch;
}

/** What is open besides the panes. */
type Overlay = "palette" | "history" | "keys" | "key" | null;
/** Colours of the page; null: those of the system. */
type Theme = "light" | "dark" | null;

/** An entry of a run from which the plan in the editor is to be run. */
interface WhatIf {
  readonly view: RunView;
  readonly seq: number;
  /** What the editor had before. */
  readonly before: { readonly name: string | null; readonly is_draft: boolean; readonly is_kept: boolean };
}

/** Pane that a narrow screen shows. */
export type Pane = "plan" | "conversation" | "log";
/** All panes. */
export const PANES: readonly Pane[] = ["plan", "conversation", "log"];

/** How long an answer holds. */
type AllowScope = "run" | "conversation";

/** What the log pane shows: what took time, or all entries. */
type LogView = "trace" | "entries";
/** Both. */
export const LOG_VIEWS: readonly LogView[] = ["trace", "entries"];

/** The demo's prompt: typed in when the page opens. */
const DEMO_PROMPT = "What is 6 × 7?";
const KEY = "preamp.key";
const THEME = "preamp.theme";
const PLAN_FOLDED = "preamp.plan_folded";
const WIDTHS = "preamp.widths";
/** What a run is asked to do that goes beyond a limit of the run before. */
const GO_FURTHER = "Continue.";
/** Tokens of a picture whose size is not known. */
const IMAGE_TOKENS = 1_600;
/** Widest and narrowest share of the window that a pane at the side may have. */
const WIDTH_BOUNDS = { least: 16, most: 45 };
/** Sessions that an empty conversation lists. */
const RECENT = 8;
/** Most earlier runs of a session that a conversation shows. */
const MAX_RUNS = 20;
/** State and actions of the page. */
export class AppState {
  readonly client: PreampClient;
  readonly #host: Host;
  #key: string | undefined;
  readonly #runs: RunViews;
  readonly #answering = new Set<string>();
  /** What a person has allowed for a whole run, or for the conversation. */
  readonly #allowed = new Set<string>();
  /** Grows whenever something else is opened. */
  #visit = 0;
  /** What is opened again once there is a key. */
  #place = "";

  /** False while the connection of a stream is lost. */
  readonly connected: Signal<boolean> = signal(true);
  /** Whether the server asked for a key that it has not got, or refused the one it got. */
  readonly needs_key: Signal<boolean> = signal(false);
  /** The last failure of an action, for the user. */
  readonly problem: Signal<string | null> = signal(null);
  /** A message for screen readers. */
  readonly announcement: Signal<string> = signal("");
  readonly overlay: Signal<Overlay> = signal(null);
  readonly pane: Signal<Pane> = signal("conversation");
  readonly log_view: Signal<LogView> = signal("trace");

  /** The plan of the next run. */
  readonly plan: PlanDraft;

  readonly prompt: Signal<string> = signal(DEMO_PROMPT);
  /** Files that go along with the prompt. */
  readonly attachments: Signal<readonly Attachment[]> = signal([]);
  /** The run whose prompt is being changed; the next run takes its place. */
  readonly edited: Signal<RunView | null> = signal(null);
  /** Runs that wait for a person and are not on the screen. */
  readonly waiting_elsewhere: Signal<number> = signal(0);
  /** The newest sessions, for an empty conversation; null until they are listed. */
  readonly recent: Signal<readonly SessionRow[] | null> = signal(null);
  /** Whether the models to choose from are shown. */
  readonly lists_models: Signal<boolean> = signal(false);
  /** Whether the plan is folded away; until a person says so, once a run has begun. */
  readonly plan_folded: Signal<boolean>;
  /** Shares of the window that the panes at the sides have, in percent. */
  readonly widths: Signal<{ readonly plan: number; readonly log: number }>;
  /** Runs of the open session, the oldest first. */
  readonly conversation: Signal<readonly RunView[]> = signal([]);
  /** Whether the session has earlier runs, which only the history shows. */
  readonly has_earlier: Signal<boolean> = signal(false);
  /** The session that the open one was forked from, if its runs are not shown. */
  readonly forked_from: Signal<string | null> = signal(null);
  /** Whether a run was asked for and has no entry yet: a second one would be another conversation. */
  readonly is_starting: Signal<boolean> = signal(false);
  /** The run whose log is shown. */
  readonly current: Signal<RunView | null> = signal(null);
  /** Entry that is selected in the log. */
  readonly selected_seq: Signal<number | null> = signal(null);
  /** Two runs side by side; null: the conversation. */
  readonly compared: Signal<Comparison | null> = signal(null);
  /** A run to be started from an entry of another one; null: none. */
  readonly what_if: Signal<WhatIf | null> = signal(null);
  readonly theme: Signal<Theme>;

  /** The runs on the screen. */
  readonly shown: ReadonlySignal<readonly RunView[]> = computed(() => {
    const { left, right } = this.compared.value ?? {};
    return left && right ? [left, right] : this.conversation.value;
  });
  /** The run of the conversation that has not ended; others of its session wait for it. */
  readonly active: ReadonlySignal<RunView | null> = computed(() =>
    this.conversation.value.find(({ status }) => !hasEnded(status.value)) ?? null
  );
  /** Questions that wait for an answer. */
  readonly open_questions: ReadonlySignal<readonly Question[]> = computed(() =>
    this.shown.value.filter(({ status }) => !hasEnded(status.value)).flatMap(({ questions }) =>
      questions.value.filter(({ status }) => status === "pending")
    )
  );

  constructor(host: Host) {
    this.#host = host;
    this.#key = host.storage.getItem(KEY) ?? undefined;
    const theme = host.storage.getItem(THEME);
    this.theme = signal(theme === "light" || theme === "dark" ? theme : null);
    this.plan_folded = signal(host.storage.getItem(PLAN_FOLDED) === "yes");
    const [plan, log] = (host.storage.getItem(WIDTHS) ?? "").split(" ").map(Number);
    this.widths = signal({ plan: boundedWidth(plan || 30), log: boundedWidth(log || 30) });
    this.client = new PreampClient({
      url: host.url,
      key: () => this.#key,
      maxDelayMs: 5_000,
      onConnection: (connected) => this.connected.value = connected,
      ...(host.fetch ? { fetch: host.fetch } : {}),
    });
    this.plan = new PlanDraft(this.client, host.storage);
    this.#runs = new RunViews({
      client: this.client,
      nextFrame: host.nextFrame,
      onNews: (news) => this.announcement.value = news,
      onStreamEnd: () => this.connected.value = true, // a failure of it is reported
    });
    effect(() => {
      const allowed = this.open_questions.value.filter((question) =>
        this.#allowed.has(kindOf(question, "run")) ||
        this.#allowed.has(kindOf(question, "conversation")) && // not for a run that is only compared
          this.conversation.value.some(({ id }) => id === question.run_id)
      );
      for (const question of allowed) this.answer(question, "allow", "allowed earlier");
    });
  }

  /** Loads the plans, and what the place names: `#/runs/ID`, `#/compare/ID/ID`, or nothing. */
  async start(place: string): Promise<void> {
    this.#place = place; // opened again once there is a key
    await this.attempt(async () => {
      await this.plan.load();
      await (place === "" ? this.#listRecent() : this.open(place));
    });
  }

  async #listRecent(): Promise<void> {
    const { data } = await this.client.listSessions({ limit: RECENT });
    this.recent.value = data as unknown as SessionRow[]; // of GET /v1/sessions
  }

  /** Opens a place. */
  async open(place: string): Promise<void> {
    const [, kind, first, second] = place.replace(/^#/, "").split("/");
    if (kind === "runs" && first) await this.openRun(first);
    else if (kind === "compare" && first && second) await this.compare(first, second);
    else this.newConversation();
  }

  /** Uses a key from now on; `keep` keeps it until the tab is closed. */
  async useKey(key: string, keep: boolean): Promise<void> {
    const text = key.trim();
    if (!/^[\x21-\x7e]+$/.test(text)) {
      this.problem.value = "A key is a word of ASCII letters, digits and signs: copy it again";
      return;
    }
    this.#key = text;
    this.needs_key.value = false;
    this.overlay.value = null;
    if (keep) this.#host.storage.setItem(KEY, text);
    else this.#host.storage.removeItem(KEY);
    await this.start(this.#place);
  }

  #setPlace(place: string): void {
    this.#place = place;
    this.#host.setPlace(place);
  }

  /** Begins to open something. The returned function throws once something else was opened since. */
  #begin(): () => void {
    const visit = ++this.#visit;
    this.is_starting.value = false; // a run that was asked for will not be shown
    return () => {
      if (visit !== this.#visit) throw new DOMException("Something else was opened", "AbortError");
    };
  }

  /** Forgets the runs that are not shown. */
  #release(): void {
    this.#runs.keep([...this.conversation.value, ...this.shown.value, this.what_if.value?.view]);
  }

  #load(view: RunView): void {
    this.#runs.follow(view).catch((error) => this.#fail(error));
  }

  /** What the next run sends: prompt, plan, and the session of the conversation if there is one. */
  get request(): RunRequest {
    const session_id = this.conversation.value.at(-1)?.session_id;
    const plan = this.plan.choice(session_id !== undefined);
    // a person is here, who can raise a limit; what the plan says about it stays
    const limits = /\bon_limit["']?\s*:/.test(this.plan.text.value) ? {} : { limits: { on_limit: "pause" } };
    return { prompt: this.#content, ...plan, ...limits, ...(session_id ? { session_id } : {}) };
  }

  /** The prompt with what goes along. */
  get #content(): RunRequest["prompt"] {
    const { attachments: { value: attachments }, prompt: { value: text } } = this;
    return attachments.length === 0
      ? text
      : [{ type: "text", text }, ...attachments.map(({ block }) => block)];
  }

  /** Reads a page of the server that needs no key. */
  async readText(path: string): Promise<string> {
    const { url, fetch = globalThis.fetch } = this.#host;
    return await (await fetch(new URL(path, url))).text();
  }

  /** Base URL of the server. */
  get url(): string {
    return this.#host.url;
  }

  /** Whether requests are sent with a key. */
  get has_key(): boolean {
    return this.#key !== undefined;
  }

  /** Starts an empty conversation. */
  newConversation(): void {
    this.#begin();
    this.edited.value = null;
    this.#allowed.clear();
    this.#foldByItself(false);
    this.conversation.value = [];
    this.has_earlier.value = false;
    this.forked_from.value = null;
    this.current.value = null;
    this.compared.value = null;
    this.selected_seq.value = null;
    this.#setPlace("");
    this.#release();
    this.plan.leaveRun().catch((error) => this.#fail(error));
    this.#listRecent().catch(() => {}); // the last list stays
  }

  /** Closes what is shown if the run or session that was deleted is part of it. */
  closeDeleted(id: string): void {
    const is_shown = [...this.conversation.value, ...this.shown.value].some((view) =>
      view.id === id || view.run.value?.session_id === id
    );
    if (is_shown) this.newConversation();
  }

  /** Runs the prompt, in the session of the conversation if there is one. */
  async run(): Promise<void> {
    const prompt = this.prompt.value;
    if (prompt.trim() === "" || this.is_starting.value) return;
    if (this.active.value) return await this.steer(prompt);
    const { request, edited: { value: edited }, attachments: { value: attachments } } = this;
    this.prompt.value = "";
    this.attachments.value = [];
    if (await this.#start(request, edited)) return;
    if (this.prompt.value === "") this.prompt.value = prompt;
    if (this.attachments.value.length === 0) this.attachments.value = attachments;
  }

  /** Runs an example, whose plan is the reader's own from then on. */
  async runExample({ prompt, plan }: { readonly prompt: string; readonly plan: string }): Promise<void> {
    if (this.is_starting.value) return;
    await this.attempt(() => this.plan.takeOwn(plan));
    this.prompt.value = prompt;
    await this.run();
  }

  /**
   * Starts a run at the end of the conversation, or in place of one of its runs: then in a new session with
   * what came before it, and the old session stays. Returns whether it has started.
   */
  async #start(body: RunRequest, replaced: RunView | null = null): Promise<boolean> {
    const { value: text } = this.plan.text;
    const earlier = this.conversation.value;
    const kept = replaced === null ? earlier : earlier.slice(0, earlier.indexOf(replaced));
    const check = this.#begin();
    let has_started = false;
    this.is_starting.value = true;
    this.announcement.value = "Running";
    await this.attempt(async () => {
      const session_id = replaced?.session_id;
      const forked = session_id && await this.client.forkSession(session_id, { before_run: replaced!.id });
      await this.#runs.follow({ ...body, ...(forked ? { session_id: String(forked.id) } : {}) }, (view) => {
        has_started = true;
        this.plan.ran(text);
        check();
        this.is_starting.value = false;
        this.edited.value = null;
        this.compared.value = null;
        this.#foldByItself(true);
        this.conversation.value = [...kept, view];
        this.select(view);
        this.#release();
      }).catch((error) => {
        if (!has_started) this.plan.refuse(error);
        throw error;
      });
    });
    if (!has_started) this.is_starting.value = false;
    return has_started;
  }

  /** Takes the prompt of a run into the box, to be changed: the next run takes its place. */
  edit(view: RunView): void {
    this.edited.value = view;
    const prompt = promptOf(view);
    this.prompt.value = textsOf(prompt);
    this.attachments.value = picturesOf(prompt);
    this.announcement.value = "Change the message, then run it again";
  }

  /** Leaves a prompt as it was. */
  cancelEdit(): void {
    this.edited.value = null;
    this.prompt.value = "";
    this.attachments.value = [];
  }

  /** Runs the prompt of a run again, in its place. */
  async retry(view: RunView): Promise<void> {
    if (this.active.value || this.is_starting.value) return;
    await this.#start({ ...this.request, prompt: promptOf(view) as RunRequest["prompt"] }, view);
  }

  /** Continues a conversation whose last run has ended at a limit: another run has limits of its own. */
  async goFurther(): Promise<void> {
    if (this.active.value || this.is_starting.value) return;
    await this.#start({ ...this.request, prompt: GO_FURTHER });
  }

  /** Folds the plan away while a conversation is on, as long as the person has not chosen. */
  #foldByItself(folded: boolean): void {
    if (this.#host.storage.getItem(PLAN_FOLDED) === null) this.plan_folded.value = folded;
  }

  /** Folds the plan away, or opens it; remembered until the tab is closed. */
  foldPlan(folded: boolean): void {
    this.plan_folded.value = folded;
    this.#host.storage.setItem(PLAN_FOLDED, folded ? "yes" : "no");
  }

  /** Sets the width of a pane at the side, in percent of the window. */
  setWidth(pane: "plan" | "log", width: number): void {
    const widths = { ...this.widths.value, [pane]: boundedWidth(width) };
    this.widths.value = widths;
    this.#host.storage.setItem(WIDTHS, `${widths.plan} ${widths.log}`);
  }

  /** Counts the runs that wait for a person elsewhere; without an answer the last count stays. */
  async countWaiting(): Promise<void> {
    if (this.needs_key.value || !this.connected.value) return;
    const waiting = await waitingRuns(this.client, 20).catch(() => null);
    if (waiting === null) return;
    const shown = new Set(this.shown.value.map(({ id }) => id));
    this.waiting_elsewhere.value = waiting.filter(({ id }) => !shown.has(id)).length;
  }

  /** Shows a run's log. */
  select(view: RunView): void {
    this.current.value = view;
    this.selected_seq.value = null;
    this.#setPlace(`#/runs/${view.id}`);
  }

  /** Shows a run in the conversation of its session, and follows it. */
  async openRun(id: string): Promise<void> {
    const check = this.#begin();
    const run = await this.client.getRun(id);
    const [{ data, next_cursor }, session] = await Promise.all([
      this.client.listRuns({ session_id: run.session_id, limit: MAX_RUNS }),
      this.client.getSession(run.session_id).catch(() => null), // an older one may be deleted
    ]);
    check();
    const runs = data.some((other) => other.id === id) ? [...data].reverse() : [run];
    const views = runs.map((run) => this.#runs.viewOf(run));
    if (!views.some((view) => this.conversation.value.includes(view))) this.#allowed.clear();
    this.compared.value = null;
    this.conversation.value = views;
    this.has_earlier.value = next_cursor !== null;
    const { parent_id, metadata } = (session ?? {}) as { parent_id?: string | null; metadata?: Data };
    this.forked_from.value = metadata?.forked_at === undefined ? null : parent_id ?? null;
    if (this.prompt.value === DEMO_PROMPT) this.prompt.value = "";
    this.select(views.find((view) => view.id === id)!);
    this.#release();
    for (const view of views) this.#load(view);
    if (this.what_if.value === null) {
      await this.plan.chooseRun(id, run.plan_hash, run.plan_hash === runs.at(-1)!.plan_hash);
    }
  }

  /** Opens the conversation of a session. */
  async openSession(session_id: string): Promise<void> {
    const { data: [run] } = await this.client.listRuns({ session_id, limit: 1 });
    if (run) await this.openRun(run.id);
    else this.problem.value = "This session has no runs any more";
  }

  /** Shows two runs side by side, and follows them. */
  async compare(left: string, right: string): Promise<void> {
    const check = this.#begin();
    const runs = await Promise.all([this.client.getRun(left), this.client.getRun(right)]);
    check();
    const compared = new Comparison(this.#runs.viewOf(runs[0]), this.#runs.viewOf(runs[1]));
    this.compared.value = compared;
    this.current.value = compared.right;
    this.selected_seq.value = null;
    this.#setPlace(`#/compare/${left}/${right}`);
    this.#release();
    this.#load(compared.left);
    this.#load(compared.right);
    compared.plans.value = await this.#comparePlans(left, right);
  }

  async #comparePlans(left: string, right: string): Promise<PlanDifference> {
    const plans = await Promise.all([left, right].map((id) => this.client.getRunPlan(id)));
    const [from, to] = plans.map(({ text }) => String(text)) as [string, string];
    const lines = lineDiff(from, to);
    if (lines === "") return { text: to, changes: null, lines };
    const changes = await this.client.plans("diff", { from, to }).catch(() => null);
    return { text: to, changes: changes as PlanChanges | null, lines }; // of POST /v1/plans/diff
  }

  /** Takes the plan of a run into the editor, so that the run can be started from an entry with another. */
  async beginWhatIf(view: RunView, seq: number, draft?: string): Promise<void> {
    const { plan } = this;
    const before = this.what_if.value?.before ?? {
      name: plan.name.value,
      is_draft: plan.is_changed.value,
      is_kept: plan.is_kept.value,
    };
    await this.attempt(async () => {
      if (!this.conversation.value.includes(view)) await this.openRun(view.id);
      const check = this.#begin();
      await plan.choose(view.id, false, true);
      check();
      if (draft !== undefined) plan.edit(draft);
      this.what_if.value = { view, seq, before };
      this.compared.value = null;
      this.current.value = view;
      this.selected_seq.value = seq;
      this.pane.value = "plan";
    });
  }

  /** Starts the run from the entry, with the plan of the editor if it was changed, and compares both. */
  async runWhatIf(): Promise<void> {
    if (this.is_starting.value) return;
    const { view, seq } = this.what_if.value!;
    const { text, is_changed } = this.plan;
    const body = { from_event: seq, ...(is_changed.value ? { plan: text.value } : {}) };
    this.is_starting.value = true;
    await this.attempt(async () => {
      const { id } = await this.client.rerun(view.id, body).catch((error) => {
        this.plan.refuse(error);
        throw error;
      });
      this.what_if.value = null;
      this.pane.value = "conversation";
      await this.compare(view.id, id);
    });
    this.is_starting.value = false;
  }

  /** Puts back the plan that the editor had. */
  async cancelWhatIf(): Promise<void> {
    const { name, is_draft, is_kept } = this.what_if.value!.before;
    this.what_if.value = null;
    await this.attempt(() => this.plan.choose(name, is_draft, is_kept));
  }

  /** Chooses the colours until the tab is closed. */
  setTheme(theme: Theme): void {
    this.theme.value = theme;
    if (theme) this.#host.storage.setItem(THEME, theme);
    else this.#host.storage.removeItem(THEME);
  }

  /** Answers a question with one of its options, or `allow` or `deny`; a second click does nothing. */
  async answer(question: Question, decision: string, reason?: string): Promise<void> {
    if (this.#answering.has(question.id)) return;
    this.#answering.add(question.id);
    if (await this.attempt(() => this.client.answer(question, decision, reason || undefined))) {
      this.announcement.value = `Answered: ${decision}`;
    }
    this.#answering.delete(question.id);
  }

  /** Allows a call, and further ones of its kind until the run ends, or until the conversation is left. */
  async allowFor(scope: AllowScope, question: Question): Promise<void> {
    this.#allowed.add(kindOf(question, scope));
    await this.answer(question, "allow");
  }

  /** Raises a limit of a run: to what the user typed. */
  raiseLimit(run_id: string, name: string, typed: string): Promise<boolean> {
    const value = name === "max_cost_usd" ? typed : Number(typed);
    return this.attempt(async () => {
      this.#runs.take(await this.client.raiseLimits(run_id, { [name]: value }));
    });
  }

  /** Sends a text that the agent reads with its next model call. */
  async steer(text: string): Promise<void> {
    const view = this.active.value;
    if (!view) return;
    this.prompt.value = "";
    const is_sent = await this.attempt(() => this.client.steer(view.id, text));
    if (!is_sent && this.prompt.value === "") this.prompt.value = text;
  }

  /** Stops a run: its answer at once, while a running tool first ends; a second time ends the tool too. */
  async stop(view = this.active.value): Promise<void> {
    if (!view) return;
    const waits_for_tool = view.transcript.runs_tool && !view.cancelling.value;
    if (waits_for_tool) this.announcement.value = "Stopping after this tool; stop again to end it";
    await this.attempt(() => this.client.cancel(view.id, waits_for_tool ? "graceful" : "immediate"));
  }

  /** Puts back the files that a run has changed; says which. */
  undo({ id }: RunView): Promise<Data | null> {
    return this.#result(() => this.client.undo(id));
  }

  /** Replays a run; says whether the agent does the same. */
  replay({ id }: RunView): Promise<Data | null> {
    return this.#result(() => this.client.replay(id));
  }

  async #result(action: () => Promise<Data>): Promise<Data | null> {
    let result: Data | null = null;
    await this.attempt(async () => result = await action());
    return result;
  }

  /** Does something; a failure becomes `problem`, a missing key a question. Returns whether it worked. */
  async attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      this.problem.value = null;
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #fail(error: unknown): void {
    if (error instanceof PreampApiError && error.status === 401) {
      this.needs_key.value = true;
      this.overlay.value = "key";
      this.problem.value = this.#key ? "The server does not know this key." : null;
    } else if (!(error instanceof DOMException && error.name === "AbortError")) {
      this.problem.value = sentenceOf(error);
    }
  }
}

/**
 * Returns what an answer for the run holds for: calls of the same tool, or the same command, because a tool
 * that runs commands can do anything.
 */
function kindOf(
  { run_id, hook_name, action, tool_name, tool_input, args_hash }: Question,
  scope: AllowScope,
): string {
  const by_arguments = tool_name === null || tool_input !== null && "command" in tool_input;
  return JSON.stringify([
    scope === "run" ? run_id : null,
    hook_name,
    action,
    tool_name,
    by_arguments ? args_hash : null,
  ]);
}

function boundedWidth(width: number): number {
  return Math.round(Math.min(WIDTH_BOUNDS.most, Math.max(WIDTH_BOUNDS.least, width)));
}

/** Returns the content with which a run was started. */
function promptOf({ entries }: RunView): unknown {
  return entries.find(({ event }) => event === "prompt:submit")?.data.prompt ?? "";
}

/** Returns the pictures of a prompt as what goes along with it again. */
function picturesOf(prompt: unknown): Attachment[] {
  const blocks = Array.isArray(prompt) ? prompt as readonly Data[] : [];
  return blocks.filter(({ type }) => type === "image").map((block, index) => ({
    name: `picture ${index + 1}`,
    bytes: String((block.source as Data | undefined)?.data ?? "").length * 3 / 4,
    tokens: IMAGE_TOKENS,
    block,
  }));
}

/** Returns the texts of a prompt. */
function textsOf(prompt: unknown): string {
  if (!Array.isArray(prompt)) return String(prompt);
  return prompt.flatMap(({ text }: { text?: unknown }) => typeof text === "string" ? text : []).join("\n\n");
}
