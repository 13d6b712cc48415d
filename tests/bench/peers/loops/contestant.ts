/** The interface of the files in this folder. */
import type { LoopFigures, LoopMemory, MeasuredLoop } from "../../loop_figures.ts";
import type { ProbeClock } from "../../loop_scripts.ts";

/** A named loop for one measurement. */
export interface Contestant {
  readonly name: string;
  readonly clock: ProbeClock;
  readonly loop: MeasuredLoop;
  close?(): PromiseLike<void>;
}

/** Creates a loop. */
export type CreateContestant = () => Contestant | Promise<Contestant>;

/** The figures of one loop. */
export interface PeerFigures extends LoopFigures {
  readonly name: string;
  readonly memory: LoopMemory;
}
