/** The interface of the files in this folder. */
import type { Script } from "../../modules/scripted.ts";

/** What a run of a script did, as far as the library reports it. */
export interface Outcome {
  /** Answers of the model. */
  readonly answers: number;
  /** Executed tool calls. */
  readonly executed: number;
  /** Deltas that reached the caller; 0 for a script without deltas. */
  readonly deltas: number;
  /** Text of the last answer. */
  readonly text: string;
}

/** A library that runs scripts. */
export interface Contestant {
  readonly name: string;
  /** Runs a script to its last answer. A script with deltas is streamed, and the caller reads each delta. */
  run(script: Script): Promise<Outcome>;
  close?(): PromiseLike<void>;
}

/** Creates a contestant. */
export type CreateContestant = () => Contestant | Promise<Contestant>;

/** The figures of one library in one scenario. */
export interface PeerFigure {
  /** Turns of a run; fewer than those of the scenario where its runs would take too long. */
  readonly turns: number;
  readonly us: number;
  readonly cpu_us: number;
  readonly bare_us: number;
  /** Median of the ratios to the bare loop, of elapsed time. */
  readonly ratio: number;
}

/** The figures of one library. */
export interface PeerFigures {
  readonly name: string;
  /** Scenario → figure. */
  readonly scenarios: Readonly<Record<string, PeerFigure>>;
}
