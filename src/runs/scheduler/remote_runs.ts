/**
 * Runs that another process executes: their state is computed from the stored log, and commands reach their
 * process as records of the store. Each process carries out the commands of its own runs.
 */
import type { ApprovalDecision, Entry } from "../../kernel/host.ts";
import { errorCode, errorMessage, PreampError } from "../../sdk/errors.ts";
import { RecentMap } from "../../sdk/recent_map.ts";
import type { ErrorCode, JsonObject, RaisableLimit, RunLimits } from "../../sdk/types.ts";
import { MAX_PAGE_BYTES } from "../../store/store.ts";
import type { RunsDeps } from "../ports.ts";
import { projectionOf, type RunProjection } from "../run/run_projection.ts";
import type { Run } from "../types.ts";

/** A command for a run. */
export type RunCommand =
  | { readonly kind: "cancel"; readonly mode: "graceful" | "immediate"; readonly reason?: string }
  | { readonly kind: "steer"; readonly text: string }
  | {
    readonly kind: "limits";
    readonly limits: Partial<Pick<RunLimits, RaisableLimit>>;
    readonly raised_by: string;
  }
  | ApprovalDecision & { kind: "decide"; approval_id: string; args_hash: string | null };

/** Carries out a command in the process that executes the run. */
export type CommandHandler = (run_id: string, command: RunCommand) => Promise<void>;

/** A stored command; `result` is there once it was carried out. */
interface StoredCommand {
  run_id: string;
  command: RunCommand;
  result?: { code: ErrorCode; message: string } | "done";
}

const KIND = "run_command";
const NAMESPACE = "internal";
/**
 * Milliseconds after which a command fails that no process has carried out: longer than another process needs
 * to continue the runs of a crashed one.
 */
const TIMEOUT_MS = 15_000;
/** Milliseconds that the command of a dead sender is stored: seven days, because clocks may differ. */
const KEEP_MS = 7 * 24 * 3_600_000;
/** Milliseconds between two looks at the store when no change is reported. */
const LOOK_EVERY_MS = 1_000;
/** Maximum entries of one read of a log. */
const MAX_ENTRIES = 10_000;
/** Events that only histories consist of. */
const HISTORY: ReadonlySet<string> = new Set(["context:message", "context:reset"]);
/** Maximum commands of one look at the store. */
const MAX_COMMANDS = 1_000;

/** Sends commands to the processes that share the store, and carries out theirs. */
export class RemoteRuns {
  readonly #deps: RunsDeps;
  readonly #isActive: (run_id: string) => boolean;
  readonly #handle: CommandHandler;
  readonly #stopped = new AbortController();
  readonly #handling = new Set<string>();
  /** Projections of runs that clients ask for, and the entries that they contain. */
  readonly #read = new RecentMap<{ projection: RunProjection; seq: number }>({ max_entries: 100 });

  /**
   * @param isActive Returns whether this process executes a run.
   * @param handle Carries out a command for a run of this process.
   */
  constructor(deps: RunsDeps, isActive: (run_id: string) => boolean, handle: CommandHandler) {
    this.#deps = deps;
    this.#isActive = isActive;
    this.#handle = handle;
  }

  /** Whether other processes can share the store. */
  get possible(): boolean {
    return this.#deps.store.changed !== undefined;
  }

  /**
   * Resolves when another process has changed what has one of the names that `concerns` returns true for,
   * `signal` aborts, or after a second: this process may have continued the run meanwhile.
   */
  async changed(signal: AbortSignal, concerns: (name: string) => boolean): Promise<void> {
    const { store, clock } = this.#deps;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    try {
      await Promise.race([
        store.changed?.(either, concerns),
        clock.after(LOOK_EVERY_MS, either).catch(() => {}),
      ]);
    } finally {
      over.abort();
    }
  }

  /** Returns a stored run; one that has not ended as of the last entry of its log. */
  async currentRun(stored: Run): Promise<Run> {
    if (stored.ended_at !== null) return stored;
    return (await this.projectionOf(stored))?.run ?? stored;
  }

  /**
   * Resolves to the projection of a stored run over its log, without histories; null when the log is no
   * longer stored. Reads what is new since the last call.
   */
  async projectionOf(stored: Run): Promise<RunProjection | null> {
    const { id } = stored;
    const known = this.#read.get(id) ?? { projection: projectionOf(stored), seq: 0 };
    this.#read.set(id, known);
    for (;;) {
      const page = await this.#deps.store.entries(id, known.seq, MAX_ENTRIES, MAX_PAGE_BYTES);
      if (page === null) return null;
      const added = (page as Entry[]).filter(({ seq }) => seq > known.seq); // without those of another call
      if (added.length === 0) return known.projection;
      for (const entry of added) if (!HISTORY.has(entry.event)) known.projection.add(entry);
      known.seq = added.at(-1)!.seq;
    }
  }

  /**
   * Sends a command and resolves when the run's process has carried it out.
   *
   * @throws {PreampError} the error of the command, `run_ended` when the run ended first, or `overloaded`
   * when no process executes the run.
   */
  async send(run_id: string, command: RunCommand): Promise<void> {
    const { store, clock, newId } = this.#deps;
    const key = newId("cmd");
    const value: StoredCommand = { run_id, command };
    const expires_ms = clock.now() + KEEP_MS;
    await store.commit([{ put: recordOf(key, value, "open", expires_ms) }]);
    const timeout = new AbortController();
    void clock.after(TIMEOUT_MS, this.#stopped.signal).catch(() => {}).then(() => timeout.abort());
    try {
      const result = await this.#resultOf(key, run_id, timeout.signal);
      if (result === undefined) {
        throw new PreampError(
          "overloaded",
          `Cannot reach run "${run_id}": no server executes it at the moment; try again in a few seconds`,
        );
      }
      if (result !== "done") throw new PreampError(result.code, result.message);
    } finally {
      await store.commit([{ delete: { kind: KIND, key } }]);
    }
  }

  async #resultOf(key: string, run_id: string, timeout: AbortSignal): Promise<StoredCommand["result"]> {
    while (!timeout.aborted) {
      const run = await this.#deps.store.get("run", run_id); // before the command: its result is stored before the end
      const record = await this.#deps.store.get(KIND, key);
      const { result } = (record?.value ?? {}) as Partial<StoredCommand>; // only this class writes them
      if (result !== undefined) return result;
      if (run?.index?.open !== "true") {
        return { code: "run_ended", message: `Cannot change run "${run_id}": it has ended` };
      }
      await this.changed(timeout, (name) => name === KIND || name === run_id);
    }
    return undefined;
  }

  /**
   * Carries out commands of other processes until {@link stop}; calls `onChange` after their changes of what
   * has one of the names that `concerns` returns true for.
   */
  start(onChange: () => void, concerns: (name: string) => boolean): void {
    const { signal } = this.#stopped;
    const { clock, log } = this.#deps;
    const repeat = async () => {
      while (!signal.aborted) {
        try {
          await this.#handleOpenCommands();
          await this.changed(signal, (name) => name === KIND || concerns(name));
          onChange();
        } catch (error) {
          log("error", "run_commands_not_read", { message: errorMessage(error) });
          await clock.after(1_000, signal);
        }
      }
    };
    repeat().catch(() => {}); // stopped
  }

  /** Aborted by {@link stop}. */
  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  /** Stops carrying out commands. */
  stop(): void {
    this.#stopped.abort();
  }

  async #handleOpenCommands(): Promise<void> {
    const { records } = await this.#deps.store.list(KIND, {
      namespace: NAMESPACE,
      where: { state: "open" },
      limit: MAX_COMMANDS,
    });
    for (const { key, value, expires_ms = 0 } of records.reverse()) { // oldest first
      const { run_id, command } = value as unknown as StoredCommand; // only this class writes them
      if (!this.#isActive(run_id) || this.#handling.has(key)) continue;
      this.#handling.add(key);
      // not awaited: a decision resolves when the run has recorded it
      void this.#carryOut(key, { run_id, command }, expires_ms).finally(() => this.#handling.delete(key));
    }
  }

  async #carryOut(key: string, { run_id, command }: StoredCommand, expires_ms: number): Promise<void> {
    const { store, log } = this.#deps;
    let result: StoredCommand["result"] = "done";
    try {
      await this.#handle(run_id, command);
    } catch (error) {
      result = { code: errorCode(error) as ErrorCode ?? "internal", message: errorMessage(error) };
    }
    try {
      await store.commit([{ put: recordOf(key, { run_id, command, result }, "done", expires_ms) }]);
    } catch (error) {
      log("error", "run_command_not_answered", { run_id, message: errorMessage(error) });
    }
  }
}

function recordOf(key: string, value: StoredCommand, state: "open" | "done", expires_ms: number) {
  return {
    kind: KIND,
    key,
    namespace: NAMESPACE,
    value: value as unknown as JsonObject,
    index: { state },
    expires_ms,
  };
}

/** Returns the projection of a stored run over entries of its log. */
export function projectRun(run: Run, entries: readonly Entry[]): RunProjection {
  const projection = projectionOf(run);
  for (const entry of entries) projection.add(entry);
  return projection;
}
