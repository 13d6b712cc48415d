/**
 * The stored records of a run: its object, its input and its sessions. Each is written when the run is accepted and when
 * it ends, in the commit of the log's entries.
 */
import type { Session } from "../../kernel/session/session.ts";
import type { Change, Fence, Store } from "../../store/store.ts";
import { inputChange, type StoredInput } from "../storage/run_input.ts";
import { inputOf, recordChange, type StoredRun } from "../storage/run_record.ts";
import type { EndedChild } from "../storage/session_store.ts";

/** Collaborators of {@link RunRecords}. */
export interface RunRecordsDeps {
  readonly run: StoredRun;
  readonly store: Store;
  fence(): Fence | undefined;
  /** Returns the change that stores the session. */
  sessionChange(): Change;
  /** Returns the change that stores a sub-agent's session. */
  childChange(child: EndedChild): Change;
}

/** Makes the changes that store a run's records, and remembers its input. */
export class RunRecords {
  readonly #deps: RunRecordsDeps;
  /** The input, once the session of the run is initialised. */
  #input: StoredInput | null = null;

  constructor(deps: RunRecordsDeps) {
    this.#deps = deps;
  }

  /** Continues with the input that a crashed process stored. */
  restoreInput(input: StoredInput): void {
    this.#input = input;
  }

  /** Returns the changes of a run that begins. */
  begun({ descriptors }: Session): Change[] {
    const { run, sessionChange } = this.#deps;
    this.#input = inputOf(run, descriptors);
    return [recordChange(run), inputChange(this.#input, true), sessionChange()];
  }

  /** Returns the changes of a run that waits. It must not change the session, which another run uses. */
  queued(place: string): Change[] {
    const { run } = this.#deps;
    return [recordChange(run, place), inputChange(inputOf(run, null), true)];
  }

  /** Stores input, state and session of a run that has waited, now that its modules are mounted and described. */
  async storeBegun(session: Session): Promise<void> {
    if (this.#input !== null) return;
    const { store, fence } = this.#deps;
    await store.commit(this.begun(session), fence());
  }

  /** Stores a sub-agent's session after a turn, and the input of that turn. */
  async storeChild(child: EndedChild): Promise<void> {
    const { store, fence, childChange } = this.#deps;
    const changes = [childChange(child)];
    if (this.#input !== null && child.input) {
      this.#input = { ...this.#input, agents: [...this.#input.agents ?? [], child.input] };
      changes.push(inputChange(this.#input, true));
    }
    await store.commit(changes, fence());
  }

  /**
   * Returns the changes of a run that has ended. Its log and its input expire at `at_ms`.
   * @param has_begun Whether the session was initialised; only then it is stored.
   */
  ended(at_ms: number, has_begun: boolean): Change[] {
    const { run, sessionChange } = this.#deps;
    const changes = [
      recordChange(run),
      inputChange(this.#input ?? inputOf(run, null), false, at_ms),
      { expireLog: run.id, at_ms },
    ];
    return has_begun ? [...changes, sessionChange()] : changes;
  }
}
