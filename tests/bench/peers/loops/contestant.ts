/** What a file of this folder exports. */
import type { LoopFigures, LoopMemory, MeasuredLoop } from "../../loop_figures.ts";
import type { ProbeClock } from "../../loop_scripts.ts";

/** A loop by its name, made for one measurement. */
export interface Contestant {
  readonly name: string;
  readonly clock: ProbeClock;
  readonly loop: MeasuredLoop;
  close?(): PromiseLike<void>;
}

/** Makes one. */
export type CreateContestant = () => Contestant | Promise<Contestant>;

/** What is told of one. */
export interface PeerFigures extends LoopFigures {
  readonly name: string;
  readonly memory: LoopMemory;
}
