/** `preamp run`: one run in this process. Progress and questions on stderr, the answer or the JSON alone on stdout. */
import { createRuntime } from "../app/runtime.ts";
import type { Runtime } from "../app/types.ts";
import { Redactor } from "../policy/redact.ts";
import type { Run, RunHandle } from "../runs/types.ts";
import { errorCode, errorMessage, type PreampError } from "../sdk/errors.ts";
import type { Arguments, Flag } from "./arguments.ts";
import { askAt } from "./ask.ts";
import { TERMINAL } from "./caller.ts";
import type { Command } from "./command.ts";
import { EXIT, exitOfStatus } from "./exit.ts";
import { DocumentFailure } from "./failure.ts";
import type { Io } from "./io.ts";
import { liveProgress } from "./live_progress.ts";
import { openStore } from "./open_store.ts";
import { plainProgress, type Progress, shown, summaryLine } from "./progress.ts";
import { type Asked, readRequest } from "./run_request.ts";
import { policyFlags, readSettings, settingFlags, type Settings } from "./settings.ts";
import { styleOf } from "./style.ts";
import { UsageError } from "./usage_error.ts";

const OWN_FLAGS: readonly Flag[] = [
  {
    name: "plan",
    short: "p",
    value: "FILE",
    many: true,
    help: "plan to run; several are laid over one another, left to right",
  },
  { name: "limit", value: "NAME=VALUE", many: true, help: "tighten a ceiling, such as max_cost_usd=0.10" },
  { name: "session", value: "ID", help: "continue a conversation" },
  {
    name: "output-format",
    value: "text|json|json-trace",
    help: "the answer (default), the run object, or {run, events, replay}: what preamp replay reads",
  },
  ...settingFlags(["plans", "store", "frozen"]),
];

/** The command. */
export const command: Command = {
  usage: 'run [flags] ["prompt"]',
  summary:
    "Runs a prompt here. Without a prompt it is read from stdin; without a plan it is plans/default.yaml, else a demo.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Progress goes to stderr, the answer to stdout. Without a terminal an approval gets its default at once.
Ctrl-C stops after the current step, a second one at once, a third leaves.

  preamp run "What is 6 × 7?"
  preamp run -p plans/calculator.yaml --limit max_tool_calls=3 "compute (12.5 - 4) ^ 2 / 3"
  echo "Hello" | preamp run -p plans/minimal.yaml --output-format json
`,
  run,
};

const FORMATS = ["text", "json", "json-trace"] as const;
type Format = typeof FORMATS[number];

async function run(args: Arguments, io: Io): Promise<number> {
  const format = readFormat(args);
  const settings = await readSettings(args, io);
  const store = openStore(settings.policy);
  refuseSession(args, settings);
  const asked = await readRequest(args, io);
  const style = styleOf(io.err);
  const live = io.err.terminal && io.env("TERM") !== "dumb";
  const progress = live ? liveProgress(io.err, io) : plainProgress(io.err);
  const warn = warner(progress, (text) => `${style.yellow("warning:")} ${text}`);
  settings.warnings.forEach(warn);
  const runtime = createRuntime({
    policy: settings.policy,
    store,
    plans: settings.plans,
    home: settings.home,
    sources: settings.sources,
    secrets: settings.api_keys,
    // what failed the run is told at its end, as its error
    log: (level, event, facts) =>
      level !== "info" && event !== "execution_failed" &&
      warn(`${event}: ${shown(facts.message ?? facts)}`, facts.message),
  });
  let handle: RunHandle | undefined;
  const unlisten = onCtrlC(io, progress, runtime, () => handle);
  try {
    handle = await create(runtime, asked, io, progress);
    handle.current().warnings.forEach(({ path, message }) =>
      warn(path === undefined ? message : `${path}: ${message}`, message)
    );
    const ended = await follow(runtime, handle, progress);
    progress.close();
    if (ended.error !== null) {
      io.err.write(`${style.red("error:")} ${shown(ended.error.message)} (${ended.error.code})\n`);
    }
    io.err.write(`${summaryLine(ended, style)}\n`);
    await write(runtime, ended, format, io);
    return exitOfStatus(ended.status);
  } finally {
    progress.close();
    unlisten();
    await runtime.close();
  }
}

async function create(runtime: Runtime, asked: Asked, io: Io, progress: Progress): Promise<RunHandle> {
  const { request, base_url, plan_name } = asked;
  try {
    return await runtime.runs.create(request, TERMINAL, {
      ask: askAt(io, progress),
      ...(base_url === undefined ? {} : { base_url }),
    });
  } catch (error) {
    const about_plan = errorCode(error) !== undefined && (error as PreampError).details?.length > 0; // ours, by its code
    throw about_plan ? new DocumentFailure(plan_name, error) : error;
  }
}

/** Shows every entry, then resolves to the run as it ended. */
async function follow(runtime: Runtime, handle: RunHandle, progress: Progress): Promise<Run> {
  for await (const entries of runtime.runs.follow(TERMINAL, handle.id, {})) entries.forEach(progress.entry);
  return await handle.settled("end");
}

async function write(runtime: Runtime, run: Run, format: Format, io: Io): Promise<void> {
  const indent = io.out.terminal ? 2 : 0;
  if (format === "text") {
    const answered = run.status === "completed" || run.status === "incomplete";
    if (answered && run.output_text !== "") io.out.write(`${run.output_text}\n`);
  } else if (format === "json") io.out.write(`${JSON.stringify(run, null, indent)}\n`);
  else {
    const { events, replay } = await runtime.runs.recording(TERMINAL, run.id);
    // the plan and the session as they were: `preamp replay` needs them
    const shown_replay = new Redactor().redact(replay);
    io.out.write(`${JSON.stringify({ run, events, replay: shown_replay }, null, indent)}\n`);
  }
}

/** First after the step that runs, then at once, then without waiting (behaviour.md §15). */
function onCtrlC(
  io: Io,
  progress: Progress,
  runtime: Runtime,
  current: () => RunHandle | undefined,
): () => void {
  let times = 0;
  return io.onStop(() => {
    const handle = current();
    times++;
    if (times > 2 || !handle) {
      progress.close();
      io.exit(EXIT.interrupted);
    }
    progress.note(
      times === 1
        ? "Stopping after this step; Ctrl-C again stops at once."
        : "Stopping at once; Ctrl-C again leaves.",
    );
    const mode = times === 1 ? "graceful" : "immediate";
    runtime.runs.cancel(TERMINAL, handle.id, mode).catch((error) =>
      progress.note(`error: ${errorMessage(error)}`)
    );
  });
}

/** Returns a function that tells each warning once, whoever brings it. */
function warner(progress: Progress, format: (text: string) => string): (text: string, key?: unknown) => void {
  const told = new Set<unknown>();
  return (text, key = text) => {
    if (told.has(key)) return;
    told.add(key);
    progress.note(format(shown(text)));
  };
}

function readFormat(args: Arguments): Format {
  const given = args.value("output-format") ?? "text";
  const format = FORMATS.find((one) => one === given);
  if (format === undefined) {
    throw new UsageError(
      `Cannot use --output-format: must be ${FORMATS.join(", ")}: received ${JSON.stringify(given)}`,
    );
  }
  return format;
}

function refuseSession(args: Arguments, { policy }: Settings): void {
  const id = args.value("session");
  if (id === undefined || policy.store !== "memory") return;
  throw new UsageError(
    `Cannot continue session ${
      JSON.stringify(id)
    }: the store is memory, and what was kept there ended with its process: ` +
      "keep the conversation on a server (preamp serve) and send session_id",
  );
}
