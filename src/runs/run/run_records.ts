/**
 * The stored records of a run: its object, its input and its sessions. Each is written when the run is
 * accepted and when it ends, in the commit of the log's entries; the object also when the run's status or its
 * approvals change.
 */
import type { Entry } from "../../kernel/host.ts";
import { withForeign } from "../../kernel/mounts.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { millisecondsOf } from "../../sdk/timestamp.ts";
import type { Change } from "../../store/store.ts";
import { inputChange, olderInputDeletion, type StoredInput } from "../storage/run_input.ts";
import {
  type EndedChild,
  hasOwnPlan,
  initialState,
  planToStore,
  positionOf,
  savedChild,
  savedSession,
  sessionChanges,
} from "../storage/session_store.ts";
import type { Caller, Run } from "../types.ts";
import type { Lease } from "./lease.ts";
import type { RunFacts } from "./run_options.ts";

/** Milliseconds of a day, the unit of `retention_days`. */
export const DAY_MS = 86_400_000;

/** Events that change what lists say of a run that has not ended: its status and its pending approvals. */
const LISTED: ReadonlySet<string> = new Set([
  "run:status",
  "approval:required",
  "approval:granted",
  "approval:denied",
]);
const NO_CHANGES: readonly Change[] = [];

/** Makes the changes that store a run's records, and remembers its input. */
export class RunRecords {
  readonly #run: RunFacts;
  /** The input, once the session of the run is initialised. */
  #input: StoredInput | null;
  /** Whether modules mounted what is not in the stored input. */
  #is_outdated = false;

  /** @param input The input that a crashed process stored. */
  constructor(run: RunFacts, input: StoredInput | null) {
    this.#run = run;
    this.#input = input;
  }

  /** Returns the changes of a run that begins. */
  begun(): Change[] {
    const { saved, orphan, caller, deps } = this.#run.options;
    const before = initialState(saved);
    this.#input = this.#inputWith(this.#run.session.descriptors);
    const session = savedSession(this.#run, deps.clock.now(), saved === null ? 0 : saved.position);
    return [
      this.#object(),
      inputChange(this.#input),
      ...(orphan ? [olderInputDeletion(this.#run.id)] : []), // it has waited, maybe since an older version
      ...sessionChanges(caller, { ...session, ...before }, { before }),
    ];
  }

  /**
   * Returns the changes that refuse a new run whose caller has as many open runs as it may have, in all
   * processes. `replaces`: whether one of them is cancelled for this one.
   */
  counted(replaces: boolean): Change[] {
    const { caller: { namespace, name: caller }, deps: { store } } = this.#run.options;
    if (store.changed === undefined) return []; // no other process
    const below = this.#run.limits.max_runs_per_key + (replaces ? 1 : 0);
    return [{ count: { kind: "run", namespace, where: { caller } }, below }];
  }

  /** Returns the changes of a run that waits. It must not change the session, which another run uses. */
  queued(place: string): Change[] {
    return [this.#object(place), inputChange(this.#inputWith(null))];
  }

  /**
   * Returns the change that stores the run object, for lists and for other processes. `place`: place of a
   * waiting run in the queue of its session.
   */
  #object(place?: string): Change {
    return runChange(this.#run.current(), this.#run.options.caller, { place });
  }

  /**
   * Returns what is stored with entries: the run object, if they change what lists say of it; and the input,
   * if a module mounted what a replay must know, also when the process ends now.
   */
  changesWith(entries: readonly Entry[]): readonly Change[] {
    const changes = entries.some(isListed) ? [this.#object()] : NO_CHANGES;
    this.#describeForeign();
    return this.#is_outdated ? [...changes, inputChange(this.#input!)] : changes;
  }

  /** Called when the changes of {@link changesWith} are stored. */
  stored(): void {
    this.#is_outdated = false;
  }

  /** Adds what modules mounted since to the input. */
  #describeForeign(): void {
    if (!this.#input?.surface) return;
    const surface = withForeign(this.#input.surface, this.#run.session.mounts);
    if (surface === this.#input.surface) return;
    this.#input = { ...this.#input, surface };
    this.#is_outdated = true;
  }

  /** Returns the input of the run. `surface`: null while its session is not initialised. */
  #inputWith(surface: StoredInput["surface"]): StoredInput {
    const run = this.#run;
    const { ready, request, caller, saved, resume, headers } = run.options;
    const { plan: _, plan_ref: __, model: ___, ...rest } = request; // the stored plan has the model
    return {
      version: 1,
      run_id: run.id,
      session_id: run.session_id,
      position: positionOf(saved),
      caller,
      request: run.secrets.redactValues(rest),
      created_at: run.created_at,
      own_plan: saved === null || hasOwnPlan(request),
      ...planToStore(run.options),
      plan: ready.compiled.written, // on the model of the request
      cost_is_asked_for: ready.cost_is_asked_for,
      ...initialState(saved),
      surface: surface && run.secrets.redactValues(surface),
      ...(surface && { steerable: typeof run.session.getCapability("session.steer") === "function" }),
      ...(headers ? { headers } : {}),
      ...(resume ? { resume: { prompt: request.prompt, iteration: resume.iteration } } : {}),
    };
  }

  /**
   * Stores input, state and session of a run that has waited, once its modules are mounted and described.
   *
   * @param store Stores changes in a commit that compares the log: another process may have executed the run
   * while this one stood still.
   */
  async storeBegun(store: (changes: () => readonly Change[]) => Promise<void> | void): Promise<void> {
    if (this.#input !== null) return;
    try {
      await store(() => this.begun());
    } catch (error) {
      this.#input = null; // the session's log is as before
      throw error;
    }
  }

  /** Stores a sub-agent's session after a turn, and the input of that turn. */
  async storeChild(child: EndedChild): Promise<void> {
    const { caller, deps } = this.#run.options;
    const now_ms = deps.clock.now();
    const expires_ms = now_ms + this.#run.limits.retention_days * DAY_MS;
    const before = initialState(child.saved);
    const changes = sessionChanges(caller, savedChild(this.#run, child, now_ms), { before, expires_ms });
    if (this.#input !== null && child.input) {
      const input = { ...child.input, position: positionOf(child.saved) };
      this.#input = { ...this.#input, agents: [...this.#input.agents ?? [], input] };
      changes.push(inputChange(this.#input));
    }
    await this.#run.store.commit(changes);
  }

  /**
   * Returns the changes of a run that has ended. All that is stored of it expires at `at_ms`.
   * @param run The run object at its end.
   * @param has_begun Whether the session was initialised; only then it is stored.
   * @param lease The lease that the run has, which is released.
   */
  ended(run: Run, at_ms: number, has_begun: boolean, lease: Lease | null): Change[] {
    this.#describeForeign();
    const { caller, deps, orphan, saved } = this.#run.options;
    const changes = endOf(run, this.#input ?? orphan?.input ?? this.#inputWith(null), at_ms, lease);
    if (!has_begun) return changes;
    const before = this.#input ?? initialState(saved);
    const position = this.#input ? this.#input.position : saved === null ? 0 : saved.position;
    const session = savedSession(this.#run, deps.clock.now(), position);
    return [...changes, ...sessionChanges(caller, session, { before, expires_ms: at_ms })];
  }
}

/**
 * Returns the changes of a run at its end. Its object, its input and its log expire at `at_ms`; `lease` is
 * released.
 */
export function endOf(run: Run, input: StoredInput, at_ms: number, lease: Lease | null): Change[] {
  return [
    runChange(run, input.caller, { expires_ms: at_ms }),
    inputChange(input, at_ms),
    { expireLog: run.id, at_ms },
    ...(lease ? [{ release: lease.fence }] : []),
  ];
}

function isListed({ event }: Entry): boolean {
  return LISTED.has(event);
}

/** Returns the change that stores a run object. Its index names the caller while the run counts. */
function runChange(
  run: Run,
  { namespace, name: caller }: Caller,
  { place, expires_ms }: { place?: string | undefined; expires_ms?: number },
): Change {
  const { id: key, session_id, status, ended_at, created_at } = run;
  const open = ended_at === null ? { open: "true", caller } : { open: "false" };
  const index = { session_id, status, ...open };
  return {
    put: {
      kind: "run",
      key,
      namespace,
      value: run as unknown as JsonObject,
      index: place === undefined ? index : { ...index, place },
      created_ms: millisecondsOf(created_at),
      ...(expires_ms === undefined ? {} : { expires_ms }),
    },
  };
}
