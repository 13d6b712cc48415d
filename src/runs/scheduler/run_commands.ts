/**
 * Carries out commands for the runs of this process, its own ones and those that others have stored; stores
 * them for the runs of other processes.
 */
import { cancelledOutcome } from "../../kernel/outcome.ts";
import { errorCode, hasCode, PreampError } from "../../sdk/errors.ts";
import type { ErrorCode } from "../../sdk/types.ts";
import { type Change, ConflictError } from "../../store/store.ts";
import type { RunsDeps } from "../ports.ts";
import type { ActiveRun } from "../run/run.ts";
import type { ReleasingMap } from "./releasing_map.ts";
import { type CommandHandler, RemoteRuns, type RunCommand, type StoredCommand } from "./remote_runs.ts";

type Cancellation = Extract<RunCommand, { kind: "cancel" }>;

/** Codes of errors after which a stored command is carried out later, here or by the next process. */
const COMES_AGAIN: ReadonlySet<string | undefined> = new Set<ErrorCode>([
  "overloaded",
  "storage_full",
  "session_conflict",
  "draining",
]);

export class RunCommands implements CommandHandler {
  readonly remote: RemoteRuns;
  readonly #runs: ReleasingMap<ActiveRun>;

  /** @param runs The runs of this process. */
  constructor(deps: RunsDeps, runs: ReleasingMap<ActiveRun>) {
    this.remote = new RemoteRuns(deps, this);
    this.#runs = runs;
  }

  /** Cancels a run of any process. One that has ended stays as it is. */
  async cancel(run_id: string, mode: Cancellation["mode"], reason?: string): Promise<void> {
    const command = { kind: "cancel", mode, ...(reason === undefined ? {} : { reason }) } as const;
    await this.send(run_id, command).catch((error) => {
      if (!hasCode(error, "run_ended")) throw error; // it ended first, which is as good
    });
  }

  /**
   * Carries out a command for a run that has not ended, or stores it for the process that executes the run or
   * will continue it.
   *
   * @param check Throws if the command, which is to be stored, cannot be carried out.
   * @param also Returns what is stored with it.
   * @throws {PreampError} the error of the command.
   */
  async send(
    run_id: string,
    command: RunCommand,
    check: () => Promise<void> | void = () => {},
    also?: () => Promise<Change[]>,
  ): Promise<void> {
    const { possible } = this.remote;
    if (!possible || this.#runs.has(run_id)) {
      try {
        const isOrdered = command.kind === "steer" || command.kind === "limits";
        if (possible && isOrdered) await this.remote.carryOut(run_id); // those that were stored before
        return await this.answer(run_id, command);
      } catch (error) {
        if (!possible || !(error instanceof ConflictError)) throw error; // else another process has the run
      }
    }
    await check();
    const stored = command.kind === "decide"
      ? { kind: "decided", approval_id: command.approval_id } as const
      : command;
    await this.remote.store(run_id, stored, also);
  }

  isActive(run_id: string): boolean {
    return this.#runs.has(run_id);
  }

  async answer(run_id: string, command: RunCommand): Promise<void> {
    const run = this.#runs.get(run_id);
    if (!run) throw new PreampError("run_ended", `Cannot ${command.kind} the run: no server executes it`);
    switch (command.kind) {
      case "steer":
        return await run.steer(command.text);
      case "limits":
        for (const id of await run.raiseLimits(command.limits, command.raised_by)) {
          await run.waiters.untilDecided(id);
        }
        return;
      case "decide": {
        const { approval_id, decision, reason, decided_by, args_hash } = command;
        await run.approvalQueue.decide(
          approval_id,
          { decision, reason, decided_by },
          args_hash ?? undefined,
        );
        return void await run.waiters.untilDecided(approval_id);
      }
      case "cancel":
        return await cancel(run, command);
    }
  }

  async carryOut(run_id: string, command: StoredCommand, deletion: Change): Promise<boolean> {
    const run = this.#runs.get(run_id);
    if (!run?.takes_commands) return false;
    try {
      if (command.kind === "steer") await run.steer(command.text, deletion);
      else if (command.kind === "limits") await run.raiseLimits(command.limits, command.raised_by, deletion);
      else {
        if (command.kind === "cancel") await cancel(run, command);
        else await run.approvalQueue.take(command.approval_id);
        await run.log.store(deletion);
      }
    } catch (error) {
      if (COMES_AGAIN.has(errorCode(error))) return false;
      run.refuse(error);
      await run.log.store(deletion);
    }
    return true;
  }
}

/** Cancels a run of this process; one that waits for its session ends at once. */
async function cancel(run: ActiveRun, { mode, reason }: Cancellation): Promise<void> {
  if (run.current().status === "queued") await run.finish(cancelledOutcome());
  else await run.cancel(mode, reason);
}
