/**
 * The stored records of a run: its object, its input and its sessions. Each is written when the run is accepted and when
 * it ends, in the commit of the log's entries.
 */
import type { Session } from "../../kernel/session/session.ts";
import type { Change, Fence } from "../../store/store.ts";
import type { RunsDeps } from "../ports.ts";
import { inputChange, type StoredInput } from "../storage/run_input.ts";
import { inputOf, recordChange, type StoredRun } from "../storage/run_record.ts";
import type { EndedChild, FinishedRun } from "../storage/session_store.ts";
import type { RunOwner } from "./run_options.ts";

/** The run whose records are stored. */
export interface RecordedRun extends StoredRun, FinishedRun {
  readonly options: StoredRun["options"] & {
    readonly deps: Pick<RunsDeps, "store">;
    readonly scheduler: RunOwner;
  };
  /** The run's own session. */
  readonly session: Session;
  fence(): Fence | undefined;
}

/** Makes the changes that store a run's records, and remembers its input. */
export class RunRecords {
  readonly #run: RecordedRun;
  /** The input, once the session of the run is initialised. */
  #input: StoredInput | null = null;

  constructor(run: RecordedRun) {
    this.#run = run;
  }

  /** Continues with the input that a crashed process stored. */
  restoreInput(input: StoredInput): void {
    this.#input = input;
  }

  /** Returns the changes of a run that begins. */
  begun(): Change[] {
    const run = this.#run;
    this.#input = inputOf(run, run.session.descriptors);
    return [recordChange(run), inputChange(this.#input, true), run.options.scheduler.change(run)];
  }

  /** Returns the changes of a run that waits. It must not change the session, which another run uses. */
  queued(place: string): Change[] {
    const run = this.#run;
    return [recordChange(run, place), inputChange(inputOf(run, null), true)];
  }

  /** Stores input, state and session of a run that has waited, once its modules are mounted and described. */
  storeBegun(): Promise<void> | void {
    if (this.#input === null) return this.#store(this.begun());
  }

  /** Stores a sub-agent's session after a turn, and the input of that turn. */
  async storeChild(child: EndedChild): Promise<void> {
    const run = this.#run;
    const changes = [run.options.scheduler.childChange(run, child)];
    if (this.#input !== null && child.input) {
      this.#input = { ...this.#input, agents: [...this.#input.agents ?? [], child.input] };
      changes.push(inputChange(this.#input, true));
    }
    await this.#store(changes);
  }

  async #store(changes: Change[]): Promise<void> {
    await this.#run.options.deps.store.commit(changes, this.#run.fence());
  }

  /**
   * Returns the changes of a run that has ended. Its log and its input expire at `at_ms`.
   * @param has_begun Whether the session was initialised; only then it is stored.
   */
  ended(at_ms: number, has_begun: boolean): Change[] {
    const run = this.#run;
    const changes = [
      recordChange(run),
      inputChange(this.#input ?? inputOf(run, null), false, at_ms),
      { expireLog: run.id, at_ms },
    ];
    return has_begun ? [...changes, run.options.scheduler.change(run)] : changes;
  }
}
