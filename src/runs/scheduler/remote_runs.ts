/**
 * Runs that another process executes: their state is computed from the stored log, and a command for them is
 * stored. The process that executes the run, or continues it, carries out its commands in their order.
 */
import type { ApprovalDecision, Entry } from "../../kernel/host.ts";
import { errorCode, errorMessage, PreampError } from "../../sdk/errors.ts";
import { jsonEqual } from "../../sdk/json.ts";
import { RecentMap } from "../../sdk/recent_map.ts";
import type { JsonObject, RaisableLimit, RunLimits } from "../../sdk/types.ts";
import { allRecords, type Change, ConflictError, MAX_PAGE_BYTES } from "../../store/store.ts";
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
  | Decision;

/** An answer to a question of a run. */
export type Decision = ApprovalDecision & { kind: "decide"; approval_id: string; args_hash: string | null };

/** A command as it is stored. The approval itself has the decision of `decided`. */
export type StoredCommand = Exclude<RunCommand, Decision> | { kind: "decided"; approval_id: string };

/** Carries out commands in the process that executes the run. */
export interface CommandHandler {
  /** Returns whether this process executes the run. */
  isActive(run_id: string): boolean;
  /**
   * Carries out a stored command, and stores `deletion` in the commit with which it takes effect, or after
   * it. Resolves to false when it must be carried out later, here or by the next process.
   */
  carryOut(run_id: string, command: StoredCommand, deletion: Change): Promise<boolean>;
  /** Carries out a command whose sender waits for its result. @throws the error of the command. */
  answer(run_id: string, command: RunCommand): Promise<void>;
}

const KIND = "run_command";
const NAMESPACE = "internal";
/** Milliseconds between two looks at the store when no change is reported. */
const LOOK_EVERY_MS = 1_000;
/** Maximum entries of one read of a log. */
const MAX_ENTRIES = 10_000;
/** Events that only histories consist of. */
const HISTORY: ReadonlySet<string> = new Set(["context:message", "context:reset"]);
/** Maximum commands of a run that are not carried out yet. */
const MAX_COMMANDS = 100;

/** Stores commands for the runs of other processes, and carries out theirs. */
export class RemoteRuns {
  readonly #deps: RunsDeps;
  readonly #handler: CommandHandler;
  readonly #stopped = new AbortController();
  /** Run id, or key of a command of an older server → the work on it. */
  readonly #working = new Map<string, Promise<void>>();
  /** Projections of runs that clients ask for, and the entries that they contain. */
  readonly #read = new RecentMap<{ projection: RunProjection; seq: number }>({ max_entries: 100 });

  constructor(deps: RunsDeps, handler: CommandHandler) {
    this.#deps = deps;
    this.#handler = handler;
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
   * Stores a command. Resolves when it is stored: the process that executes the run carries it out, or the
   * one that continues it.
   *
   * @param also Returns what is stored in the same commit; called again when that failed to compare.
   * @throws {PreampError} `overloaded` when too many commands of the run wait.
   */
  async store(
    run_id: string,
    command: StoredCommand,
    also: () => Promise<Change[]> = () => Promise.resolve([]),
  ): Promise<void> {
    const { store } = this.#deps;
    for (let tries = 1;; tries++) {
      const changes = await also();
      const waiting = await this.#commandsOf(run_id);
      if (command.kind === "cancel" && waiting.some((other) => jsonEqual(other.command, command))) return;
      if (waiting.length >= MAX_COMMANDS && (command.kind === "steer" || command.kind === "limits")) {
        throw new PreampError(
          "overloaded",
          `Cannot ${command.kind} run "${run_id}": ${MAX_COMMANDS} commands wait for it; try again later`,
        );
      }
      const number = (waiting.at(-1)?.number ?? 0) + tries;
      const put = {
        kind: KIND,
        key: `${run_id}/${number}`,
        namespace: NAMESPACE,
        value: { run_id, command },
        index: { run_id, state: "open" },
      };
      try {
        return await store.commit([...changes, { put, expect: 0 }]);
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error; // else another command was faster
      }
    }
  }

  /** Resolves to the stored commands of a run, in their order. */
  async #commandsOf(run_id: string): Promise<{ key: string; number: number; command: StoredCommand }[]> {
    const { records } = await this.#deps.store.list(KIND, {
      namespace: NAMESPACE,
      where: { run_id },
      limit: 10 * MAX_COMMANDS,
    });
    return records.map(({ key, value }) => ({
      key,
      number: Number(key.slice(run_id.length + 1)),
      command: value.command as unknown as StoredCommand, // only this class writes them
    })).sort((a, b) => a.number - b.number);
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
          await this.#carryOutAll();
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

  async #carryOutAll(): Promise<void> {
    const { store } = this.#deps;
    const runIds = new Set<string>();
    const options = { namespace: NAMESPACE, where: { state: "open" } };
    for await (const { key, index } of allRecords(store, KIND, options)) {
      if (index?.run_id !== undefined) runIds.add(index.run_id);
      else if (!this.#working.has(key)) void this.#workOn(key, () => this.#answer(key));
    }
    for (const run_id of runIds) {
      if (!this.#handler.isActive(run_id)) await this.#deleteIfEnded(run_id);
      else if (!this.#working.has(run_id)) void this.carryOut(run_id); // other runs do not wait for it
    }
  }

  /** Deletes the commands of a run that has ended before they were carried out. */
  async #deleteIfEnded(run_id: string): Promise<void> {
    const { store } = this.#deps;
    const run = await store.get("run", run_id);
    if (run?.index?.open === "true") return;
    const commands = await this.#commandsOf(run_id);
    await store.commit(commands.map(({ key }) => deletionOf(key)));
  }

  /** Carries out the stored commands of a run of this process. Never rejects. */
  carryOut(run_id: string): Promise<void> {
    return this.#workOn(run_id, () => this.#carryOut(run_id));
  }

  /** Works after what is in progress under this name. Never rejects. */
  #workOn(name: string, work: () => Promise<void>): Promise<void> {
    const done = (this.#working.get(name) ?? Promise.resolve()).then(work).catch((error) =>
      this.#deps.log("error", "run_commands_not_read", { message: errorMessage(error) })
    ).finally(() => {
      if (this.#working.get(name) === done) this.#working.delete(name);
    });
    this.#working.set(name, done);
    return done;
  }

  async #carryOut(run_id: string): Promise<void> {
    /** Kinds of commands of which one is left: those after it wait, too. */
    const left = new Set<StoredCommand["kind"]>();
    for (const { key, command } of await this.#commandsOf(run_id)) {
      if (left.has(command.kind)) continue;
      if (!await this.#handler.carryOut(run_id, command, deletionOf(key))) left.add(command.kind);
    }
  }

  /** Carries out a command of a server of an older version, which waits until its record has the result. */
  async #answer(key: string): Promise<void> {
    const { store } = this.#deps;
    const record = await store.get(KIND, key);
    const { run_id, command } = (record?.value ?? {}) as { run_id?: string; command?: RunCommand };
    if (!record || run_id === undefined || !command || !this.#handler.isActive(run_id)) return;
    let result: string | JsonObject = "done";
    try {
      await this.#handler.answer(run_id, command);
    } catch (error) {
      result = { code: errorCode(error) ?? "internal", message: errorMessage(error) };
    }
    const { version: _, value, ...put } = record;
    await store.commit([{ put: { ...put, value: { ...value, result }, index: { state: "done" } } }]);
  }
}

function deletionOf(key: string): Change {
  return { delete: { kind: KIND, key } };
}

/** Returns the projection of a stored run over entries of its log. */
export function projectRun(run: Run, entries: readonly Entry[]): RunProjection {
  const projection = projectionOf(run);
  for (const entry of entries) projection.add(entry);
  return projection;
}
