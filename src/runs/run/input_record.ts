/** The stored input of one run: see `storage/run_input.ts`. */
import type { Change, Fence, Store } from "../../store/store.ts";
import { inputChange, type StoredInput } from "../storage/run_input.ts";
import { inputOf, recordChange, type StoredRun } from "../storage/run_record.ts";
import type { AgentInput } from "../types.ts";

/** Collaborators of {@link InputRecord}. */
export interface InputRecordDeps {
  readonly run: StoredRun;
  readonly store: Store;
  readonly fence: () => Fence | undefined;
}

/** Makes the changes that store a run's input, and remembers what was stored. */
export class InputRecord {
  readonly #deps: InputRecordDeps;
  /** The input, once the session of the run is initialised. */
  #input: StoredInput | null = null;

  constructor(deps: InputRecordDeps) {
    this.#deps = deps;
  }

  /** Whether the input of an initialised session is known. */
  get is_known(): boolean {
    return this.#input !== null;
  }

  /** Continues with the input that a crashed process stored. */
  restore(input: StoredInput): void {
    this.#input = input;
  }

  /** Returns the change that stores the input. `descriptors`: null while the session is not initialised. */
  open(descriptors: StoredInput["surface"]): Change {
    const input = inputOf(this.#deps.run, descriptors);
    if (descriptors !== null) this.#input = input;
    return inputChange(input, true);
  }

  /** Stores the input and the state of a run that waited, now that its modules are mounted and described. */
  async store(descriptors: StoredInput["surface"]): Promise<void> {
    const { run, store, fence } = this.#deps;
    await store.commit([this.open(descriptors), recordChange(run)], fence());
  }

  /** Adds the input of a sub-agent's turn; returns the change that stores both. */
  addAgent(agent: AgentInput | null): Change[] {
    if (this.#input === null) return [];
    if (agent) this.#input = { ...this.#input, agents: [...this.#input.agents ?? [], agent] };
    return [inputChange(this.#input, true)];
  }

  /** Returns the change that stores the input of the ended run until `at_ms`. */
  close(at_ms: number): Change {
    return inputChange(this.#input ?? inputOf(this.#deps.run, null), false, at_ms);
  }
}
