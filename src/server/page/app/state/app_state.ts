/**
 * The state of the page and what the user can do: signals that components read, and actions that they call.
 * Knows no DOM; the browser's parts come in as `Host`.
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  type Data,
  type Entry,
  PreampApiError,
  PreampClient,
  type Run,
  type RunRequest,
} from "preamp/client";
import { Comparison, type PlanDifference } from "./comparison.ts";
import { sentenceOf } from "./failures.ts";
import { lineDiff } from "./line_diff.ts";
import { type PlanChanges, PlanDraft } from "./plan_draft.ts";
import { hasEnded, type Question, RunView } from "./run_view.ts";

/** What the state needs from the browser. */
export interface Host {
  /** Base URL of the server, with its base path. */
  readonly url: string;
  /** Keeps texts until the tab is closed. */
  readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** Calls a function before the next frame. */
  readonly nextFrame: (run: () => void) => void;
  /** Writes the place in the page's address, such as `#/runs/run_1`. */
  readonly setPlace: (place: string) => void;
  readonly fetch?: typeof fetch;
}

/** What is open besides the panes. */
export type Overlay = "palette" | "history" | "keys" | "key" | null;
/** Colours of the page; null: those of the system. */
export type Theme = "light" | "dark" | null;

/** An entry of a run from which the plan in the editor is to be run. */
export interface WhatIf {
  readonly view: RunView;
  readonly seq: number;
  /** What the editor had before. */
  readonly before: { readonly name: string | null; readonly is_draft: boolean };
}

/** Pane that a narrow screen shows. */
export type Pane = "plan" | "conversation" | "log";
/** All panes. */
export const PANES: readonly Pane[] = ["plan", "conversation", "log"];

/** The demo's prompt: typed in when the page opens. */
const DEMO_PROMPT = "What is 6 × 7?";
const KEY = "preamp.key";
const THEME = "preamp.theme";
/** Characters of a prompt that a list shows. */
const MAX_NAME = 80;
/** Most earlier runs of a session that a conversation shows. */
const MAX_RUNS = 20;
/** Events after which the run object is fetched again: its usage, limits or approvals changed. */
const CHANGES_RUN = /^(provider:(response|error|retry)|approval:|run:|tool:post)/;
const REFRESH_MS = 400;

/** State and actions of the page. */
export class AppState {
  readonly client: PreampClient;
  readonly #host: Host;
  #key: string | undefined;
  readonly #views = new Map<string, RunView>();
  readonly #following = new Map<string, AbortController>();
  readonly #refreshing = new Set<RunView>();

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

  /** The plan of the next run. */
  readonly plan: PlanDraft;

  readonly prompt: Signal<string> = signal(DEMO_PROMPT);
  /** Runs of the open session, the oldest first. */
  readonly conversation: Signal<readonly RunView[]> = signal([]);
  /** The run whose log is shown. */
  readonly current: Signal<RunView | null> = signal(null);
  /** Entry that is selected in the log. */
  readonly selected_seq: Signal<number | null> = signal(null);
  /** Two runs side by side; null: the conversation. */
  readonly compared: Signal<Comparison | null> = signal(null);
  /** A run to be started from an entry of another one; null: none. */
  readonly what_if: Signal<WhatIf | null> = signal(null);
  readonly theme: Signal<Theme>;

  /** Whether a run of the conversation has not ended. */
  readonly is_active: ReadonlySignal<boolean> = computed(() => {
    const last = this.conversation.value.at(-1);
    return last !== undefined && !hasEnded(last.status.value);
  });
  /** Questions that wait for an answer. */
  readonly open_questions: ReadonlySignal<readonly Question[]> = computed(() => {
    const { left, right } = this.compared.value ?? {};
    const views = left && right ? [left, right] : this.conversation.value.slice(-1);
    return views.filter((view) => !hasEnded(view.status.value)).flatMap((view) =>
      view.questions.value.filter(({ status }) => status === "pending")
    );
  });

  constructor(host: Host) {
    this.#host = host;
    this.#key = host.storage.getItem(KEY) ?? undefined;
    const theme = host.storage.getItem(THEME);
    this.theme = signal(theme === "light" || theme === "dark" ? theme : null);
    this.client = new PreampClient({
      url: host.url,
      key: () => this.#key,
      maxDelayMs: 5_000,
      onConnection: (connected) => this.connected.value = connected,
      ...(host.fetch ? { fetch: host.fetch } : {}),
    });
    this.plan = new PlanDraft(this.client, host.storage);
  }

  /** Loads the plans, and what the place names: `#/runs/ID`, `#/compare/ID/ID`, or nothing. */
  async start(place: string): Promise<void> {
    this.#place = place; // opened again once there is a key
    await this.attempt(async () => {
      await this.plan.load();
      if (place !== "") await this.open(place);
    });
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
    this.#key = key.trim();
    this.needs_key.value = false;
    if (keep) this.#host.storage.setItem(KEY, this.#key);
    else this.#host.storage.removeItem(KEY);
    await this.start(this.#place);
  }

  #place = "";

  #setPlace(place: string): void {
    this.#place = place;
    this.#host.setPlace(place);
  }

  /** What the next run sends: prompt, plan, and the session of the conversation if there is one. */
  get request(): RunRequest {
    const session_id = this.conversation.value.at(-1)?.run.value?.session_id;
    const plan = this.plan.choice(session_id !== undefined);
    return { prompt: this.prompt.value, ...plan, ...(session_id ? { session_id } : {}) };
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
    this.conversation.value = [];
    this.current.value = null;
    this.compared.value = null;
    this.selected_seq.value = null;
    this.#setPlace("");
  }

  /** Runs the prompt, in the session of the conversation if there is one. */
  async run(): Promise<void> {
    const prompt = this.prompt.value;
    if (prompt.trim() === "") return;
    const last = this.conversation.value.at(-1);
    if (last && !hasEnded(last.status.value)) return await this.steer(prompt);
    const name = prompt.replace(/\s+/g, " ").slice(0, MAX_NAME);
    const body = { ...this.request, metadata: { name } };
    const { value: text } = this.plan.text;
    this.prompt.value = "";
    this.announcement.value = "Running";
    const started = await this.attempt(() =>
      this.follow(body, (view) => {
        this.plan.ran(text);
        this.#show(view);
      }).catch((error) => {
        this.plan.refuse(error);
        throw error;
      })
    );
    if (!started && this.prompt.value === "") this.prompt.value = prompt;
  }

  #show(view: RunView): void {
    this.conversation.value = [...this.conversation.value, view];
    this.select(view);
  }

  /** Shows a run's log. */
  select(view: RunView): void {
    this.current.value = view;
    this.selected_seq.value = null;
    this.#setPlace(`#/runs/${view.id}`);
  }

  /** Shows a run in the conversation of its session, and follows it. */
  async openRun(id: string): Promise<void> {
    const run = await this.client.getRun(id);
    const { data } = await this.client.listRuns({ session_id: run.session_id, limit: MAX_RUNS });
    const runs = data.some((other) => other.id === id) ? [...data].reverse() : [run];
    const views = runs.map((run) => this.#viewOf(run.id, run));
    this.compared.value = null;
    this.conversation.value = views;
    this.prompt.value = "";
    this.select(views.find((view) => view.id === id)!);
    for (const view of views) this.#load(view.id);
    if (this.what_if.value === null) await this.plan.chooseRun(id, run.plan_hash);
  }

  /** Opens the conversation of a session. */
  async openSession(session_id: string): Promise<void> {
    const { data: [run] } = await this.client.listRuns({ session_id, limit: 1 });
    if (run) await this.openRun(run.id);
    else this.problem.value = "This session has no runs any more";
  }

  /** Shows two runs side by side, and follows them. */
  async compare(left: string, right: string): Promise<void> {
    await Promise.all([left, right].map((id) => this.client.getRun(id))); // fails before anything is shown
    const compared = new Comparison(this.#viewOf(left), this.#viewOf(right));
    this.compared.value = compared;
    this.current.value = compared.right;
    this.selected_seq.value = null;
    this.#setPlace(`#/compare/${left}/${right}`);
    this.#load(left);
    this.#load(right);
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
    const before = this.what_if.value?.before ?? { name: plan.name.value, is_draft: plan.is_changed.value };
    await this.attempt(async () => {
      if (!this.conversation.value.includes(view)) await this.openRun(view.id);
      await plan.choose(view.id);
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
    const { view, seq } = this.what_if.value!;
    const { text, is_changed } = this.plan;
    const attempt = async () => {
      const body = { from_event: seq, ...(is_changed.value ? { plan: text.value } : {}) };
      const { id } = await this.client.rerun(view.id, body);
      this.what_if.value = null;
      this.pane.value = "conversation";
      await this.compare(view.id, id);
    };
    await this.attempt(() =>
      attempt().catch((error) => {
        this.plan.refuse(error);
        throw error;
      })
    );
  }

  /** Puts back the plan that the editor had. */
  async cancelWhatIf(): Promise<void> {
    const { name, is_draft } = this.what_if.value!.before;
    this.what_if.value = null;
    await this.attempt(() => this.plan.choose(name, is_draft));
  }

  /** Chooses the colours until the tab is closed. */
  setTheme(theme: Theme): void {
    this.theme.value = theme;
    if (theme) this.#host.storage.setItem(THEME, theme);
    else this.#host.storage.removeItem(THEME);
  }

  #load(id: string): void {
    this.attempt(() => this.follow(id));
  }

  #viewOf(id: string, run: Run | null = null): RunView {
    let view = this.#views.get(id);
    if (!view) this.#views.set(id, view = new RunView(id));
    if (run) {
      view.run.value = run;
      view.status.value = run.status;
    }
    return view;
  }

  /**
   * Receives the entries of a new run, or of one that exists, until it ends. `onStart` is called with the
   * view of a new run once it has its first entry.
   */
  async follow(target: RunRequest | string, onStart: (view: RunView) => void = () => {}): Promise<void> {
    let view = typeof target === "string" ? this.#viewOf(target) : undefined;
    if (view && this.#following.has(view.id)) return;
    const controller = new AbortController();
    if (view) this.#following.set(view.id, controller);
    let waiting: Entry[] = [];
    const flush = () => {
      const entries = waiting;
      waiting = [];
      if (entries.length > 0) this.#add(view!, entries);
    };
    try {
      const after = view?.entries.at(-1)?.seq ?? 0;
      for await (const entry of this.client.stream(target, { after, signal: controller.signal })) {
        if (!view) {
          view = this.#viewOf(entry.run_id);
          this.#following.set(view.id, controller);
          onStart(view);
        }
        if (waiting.push(entry) === 1) this.#host.nextFrame(flush);
      }
    } finally {
      this.connected.value = true; // the stream has ended, or its failure is reported
      flush();
      if (view) {
        this.#following.delete(view.id);
        this.#refresh(view);
      }
    }
  }

  #add(view: RunView, entries: readonly Entry[]): void {
    view.add(entries);
    if (entries.some(({ event }) => CHANGES_RUN.test(event))) this.#refresh(view);
    for (const { event, data } of entries) {
      if (event === "approval:required") this.announcement.value = `Question: ${data.prompt}`;
      if (event === "run:end") this.announcement.value = `Run ${(data.run as Run).status}`;
    }
  }

  /** Fetches the run object, at most once in a while. */
  #refresh(view: RunView): void {
    const is_final = () => view.run.value !== null && hasEnded(view.run.value.status);
    if (is_final() || this.#refreshing.has(view)) return;
    this.#refreshing.add(view);
    const fetchRun = async () => {
      this.#refreshing.delete(view);
      if (is_final()) return; // the entry of the end had it
      await this.client.getRun(view.id).then((run) => {
        if (!is_final()) view.run.value = run;
      }, () => {}); // the stream says that the server is lost
    };
    setTimeout(fetchRun, view.run.value ? REFRESH_MS : 0);
  }

  /** Answers a question with one of its options, or `allow` or `deny`. */
  async answer(question: Question, decision: string, reason?: string): Promise<void> {
    await this.attempt(() => this.client.answer(question, decision, reason || undefined));
  }

  /** Raises a limit of a run. */
  async raiseLimit(
    name: string,
    value: string | number,
    run_id = this.current.value?.id,
  ): Promise<boolean> {
    return run_id !== undefined && await this.attempt(async () => {
      this.#viewOf(run_id).run.value = await this.client.raiseLimits(run_id, { [name]: value });
    });
  }

  /** Sends a text that the agent reads with its next model call. */
  async steer(text: string): Promise<void> {
    const view = this.conversation.value.at(-1);
    if (view && await this.attempt(() => this.client.steer(view.id, text))) this.prompt.value = "";
  }

  /** Cancels a run in progress: the second time at once. */
  async cancel(view = this.conversation.value.at(-1)): Promise<void> {
    if (!view) return;
    await this.attempt(() => this.client.cancel(view.id, view.cancelling.value ? "immediate" : "graceful"));
  }

  /** Puts back the files that a run has changed; says which. */
  async undo(view: RunView): Promise<Data | null> {
    let result: Data | null = null;
    await this.attempt(async () => {
      result = await this.client.undo(view.id);
    });
    return result;
  }

  /** Replays a run; says whether the agent does the same. */
  async replay(view: RunView): Promise<Data | null> {
    let result: Data | null = null;
    await this.attempt(async () => {
      result = await this.client.replay(view.id);
    });
    return result;
  }

  /** Does something; a failure becomes `problem`, a missing key `needs_key`. Returns whether it worked. */
  async attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      this.problem.value = null;
      return true;
    } catch (error) {
      if (error instanceof PreampApiError && error.status === 401) {
        this.needs_key.value = true;
        this.overlay.value = "key";
        this.problem.value = this.#key ? "The server does not know this key." : null;
      } else if (!(error instanceof DOMException && error.name === "AbortError")) {
        this.problem.value = sentenceOf(error);
      }
      return false;
    }
  }
}
