/** Runs that the embedding program starts itself, without HTTP. */
import type { Entry } from "../kernel/host.ts";
import type { Caller, CreateOptions, Run, RunRequest, Runs } from "../runs/types.ts";
import { type ErrorCode, PreampError } from "../sdk/errors.ts";
import { endReason } from "./routes/create_run.ts";

/**
 * The caller of the program's own runs. Plans in its code are the operator's: they may name files, variables
 * and permissions like a plan of `preamp run`. Requests over HTTP see its runs only with its namespace.
 */
export const LIBRARY: Caller = { name: "library", namespace: "library", origin: "operator" };

/** A run to start. Without a plan it is the session's, else the plan named `default`, else the demo plan. */
export interface LibraryRequest extends Omit<RunRequest, "session_id" | "on_disconnect"> {
  /** Session to continue: `session_id` of an earlier run. Default: a new session. */
  session?: string;
  /**
   * Folder of the plan's relative sources and files, as a URL such as `import.meta.url`. Default: a plan
   * without relative sources.
   */
  base_url?: string;
  /**
   * Answers approvals. Default: with `caller`, they wait for an answer over HTTP; without it, they are
   * denied at once, with the warning `approval_unanswered`.
   */
  ask?: CreateOptions["ask"];
  /** Cancels the run when it is aborted. Default: nothing does. */
  signal?: AbortSignal;
  /**
   * For whom the run is started. With `origin: "caller"`, as `authenticate` returns it, the plan has the
   * rights of a plan in a request. Default: {@link LIBRARY}, whose plans are the operator's.
   */
  caller?: Caller;
}

/** A run of the program. Iterating over it yields the entries of its log from the first to `run:end`. */
export interface LibraryRun extends AsyncIterable<Entry> {
  /** Id of the run. */
  readonly id: string;
  /** Id of its session: the `session` of the next request of the conversation. */
  readonly session_id: string;
  /** Resolves to the answer. Rejects with a `PreampError` if the run does not end as `completed`. */
  readonly text: Promise<string>;
  /** Resolves to the run object when the run has ended, with whatever status. */
  readonly result: Promise<Run>;
  /** Cancels the run. `graceful` (default): after the calls at hand. An ended run stays as it is. */
  cancel(mode?: "graceful" | "immediate"): Promise<Run>;
}

/** Starts a run. */
export async function startRun(runs: Runs, given: LibraryRequest): Promise<LibraryRun> {
  const { caller = LIBRARY, session, signal, base_url, ask: _, ...request } = given;
  const ask = given.ask ?? (given.caller ? undefined : () => Promise.resolve(null));
  const handle = await runs.create(
    {
      ...request,
      ...(session === undefined ? {} : { session_id: session }),
      ...(signal ? { on_disconnect: "cancel" as const } : {}),
    },
    caller,
    {
      ...(signal ? { signal } : {}),
      ...(ask ? { ask } : {}),
      ...(base_url === undefined ? {} : { base_url }),
    },
  );
  const { id, session_id } = handle;
  return {
    id,
    session_id,
    get text() {
      return handle.settled("end").then(answerOf);
    },
    get result() {
      return handle.settled("end");
    },
    cancel: (mode = "graceful") => runs.cancel(caller, id, mode),
    async *[Symbol.asyncIterator]() {
      for await (const entries of runs.follow(caller, id, {})) yield* entries;
    },
  };
}

/** Returns the answer of an ended run. @throws {PreampError} if it is not `completed`. */
function answerOf(run: Run): string {
  const { id, status, stop_reason, output_text } = run;
  if (status === "completed") return output_text;
  const code = run.error?.code ?? (status === "denied" || status === "cancelled" ? status : "limit_reached");
  throw new PreampError(code as ErrorCode, endReason(run), { facts: { run_id: id, status, stop_reason } }); // run:end has one of them
}
