/** The runs that the page has in memory: their views, the streams that fill them, and their run objects. */
import { type Entry, hasEnded, type PreampClient, type Run, type RunRequest } from "preamp/client";
import { RunView } from "./run_view.ts";

/** Events after which the run object is fetched again: its usage, limits or approvals changed. */
const CHANGES_RUN = /^(provider:(response|error|retry)|approval:|run:|tool:post)/;
const REFRESH_MS = 400;

/** Options of {@link RunViews}. */
interface RunViewsOptions {
  readonly client: Pick<PreampClient, "stream" | "getRun">;
  /** Calls a function before the next frame. */
  readonly nextFrame: (run: () => void) => void;
  /** Receives what a screen reader says: a new question, the end of a run. */
  readonly onNews: (news: string) => void;
  /** Called when a stream has ended or failed. */
  readonly onStreamEnd: () => void;
}

/** The runs that are shown, and those that are about to be. */
export class RunViews {
  readonly #options: RunViewsOptions;
  readonly #views = new Map<string, RunView>();
  readonly #following = new Map<RunView, AbortController>();
  readonly #refreshing = new Set<RunView>();

  constructor(options: RunViewsOptions) {
    this.#options = options;
  }

  /** Returns the view of a run; its entries are newer than a run object that was asked for. */
  viewOf(run: Run): RunView {
    let view = this.#views.get(run.id);
    if (!view) this.#views.set(run.id, view = new RunView(run.id));
    if (view.count.value === 0) {
      view.run.value = run;
      view.status.value = run.status;
    }
    return view;
  }

  /** Forgets all other runs and ends their streams: a browser has six connections to a server. */
  keep(views: readonly (RunView | undefined)[]): void {
    const kept = new Set(views);
    for (const [id, view] of this.#views) {
      if (kept.has(view)) continue;
      this.#views.delete(id);
      this.#following.get(view)?.abort();
    }
  }

  /**
   * Receives the entries of a new run, or of a view, until the run ends. `onStart` is called with the view of
   * a new run once it has its first entry.
   */
  async follow(target: RunRequest | RunView, onStart: (view: RunView) => void = () => {}): Promise<void> {
    let view = target instanceof RunView ? target : undefined;
    if (view && (this.#following.has(view) || view.ended.value !== null)) return;
    const controller = new AbortController();
    if (view) this.#following.set(view, controller);
    let waiting: Entry[] = [];
    const flush = () => {
      const entries = waiting;
      waiting = [];
      if (entries.length > 0) this.#add(view!, entries);
    };
    try {
      const options = { after: view?.entries.at(-1)?.seq ?? 0, signal: controller.signal };
      for await (const entry of this.#options.client.stream(view?.id ?? target as RunRequest, options)) {
        if (!view) {
          view = this.#views.get(entry.run_id) ?? new RunView(entry.run_id);
          this.#views.set(view.id, view);
          this.#following.set(view, controller);
          onStart(view);
        }
        if (waiting.push(entry) === 1) this.#options.nextFrame(flush);
      }
    } finally {
      this.#options.onStreamEnd();
      flush();
      if (view) {
        this.#following.delete(view);
        if (!controller.signal.aborted) this.#refresh(view);
      }
    }
  }

  #add(view: RunView, entries: readonly Entry[]): void {
    const had_ended = hasEnded(view.status.value);
    view.add(entries);
    if (entries.some(({ event }) => CHANGES_RUN.test(event))) this.#refresh(view);
    if (had_ended) return; // the log of an earlier run: nothing of it is news
    const asked = entries.findLast(({ event }) => event === "approval:required")?.data;
    const open = view.questions.value.find(({ id, status }) =>
      id === asked?.approval_id && status === "pending"
    );
    if (open) this.#options.onNews(`Question: ${open.prompt}`);
    if (hasEnded(view.status.value)) this.#options.onNews(`Run ${view.status.value}`);
  }

  /** Takes a run object, unless that of the end is there: it may come later than the entry with it. */
  take(run: Run): void {
    const view = this.#views.get(run.id);
    if (view?.ended.value === null) view.run.value = run;
  }

  /** Fetches the run object, at most once in a while. */
  #refresh(view: RunView): void {
    if (view.ended.value !== null || this.#refreshing.has(view)) return;
    this.#refreshing.add(view);
    const fetchRun = async () => {
      this.#refreshing.delete(view);
      if (view.ended.value !== null) return;
      await this.#options.client.getRun(view.id).then(
        (run) => this.take(run),
        () => {}, // the stream says that the server is lost
      );
    };
    setTimeout(fetchRun, view.run.value ? REFRESH_MS : 0);
  }
}
