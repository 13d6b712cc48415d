/** `preamp run`: one run in this process. Progress and questions on stderr, the answer or the JSON alone on stdout. */
import { createRuntime } from "../../app/runtime.ts";
import type { Runtime } from "../../app/types.ts";
import { Redactor } from "../../policy/redact.ts";
import type { RunInput } from "../../runs/types.ts";
import type { Run, RunHandle } from "../../runs/types.ts";
import { errorCode, errorMessage, type PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { Arguments, Flag } from "../arguments.ts";
import { askAt } from "../terminal/approval_prompt.ts";
import { TERMINAL } from "../caller.ts";
import type { Command } from "../command.ts";
import { EXIT, exitOfStatus } from "../exit.ts";
import { DocumentFailure } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, readFormat, writeJson } from "../output_format.ts";
import { messageText, summaryLine } from "../terminal/progress_lines.ts";
import { createRunDisplay, type RunDisplay } from "../run_display.ts";
import { type Asked, readRequest } from "../run_request.ts";
import { policyFlags, readSettings, settingFlags, type Settings } from "../settings.ts";
import { redirectConsole } from "../stray_output.ts";
import { styleOf } from "../terminal/style.ts";
import { UsageError } from "../usage_error.ts";

const OWN_FLAGS: readonly Flag[] = [
  {
    name: "plan",
    short: "p",
    value: "FILE",
    many: true,
    help: "plan to run; several are laid over one another, left to right",
  },
  { name: "profile", value: "NAME", help: "plan to run, by its name in plans/ or $PREAMP_HOME/plans/" },
  { name: "bundle", value: "NAME", help: "the same as --profile" },
  { name: "limit", value: "NAME=VALUE", many: true, help: "tighten a ceiling, such as max_cost_usd=0.10" },
  { name: "session", value: "ID", help: "continue a conversation" },
  { name: "strict", help: "exit 1 on any warning; those before the first step keep the run from starting" },
  ...formatFlags({
    help: "the answer (default), the run object, or {run, events, replay}: what preamp replay reads",
    more: ["json-trace"],
  }),
  ...settingFlags(["plans", "store", "frozen"]),
];

/** The command. */
export const command: Command = {
  usage: 'run [flags] ["prompt"]',
  summary:
    "Runs a prompt here. Without a prompt it is read from stdin; without a plan it is plans/default.yaml, else a demo.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Progress and warnings go to stderr, the answer to stdout. A terminal displays every text of the model as it is
written. When stdout is no terminal, it gets the answer alone: piece by piece when the plan has no tools, else once its
last response is complete.

Without a terminal an approval gets its default at once. Ctrl-C stops after the current step, a second one at once, a
third one ends the process; the text that arrived stays. The exit code is 130.
Each key of preamp.yaml is a flag too, such as --limits.tool_timeout_s 5: preamp help serve lists them.

  preamp run "What is 6 × 7?"
  preamp run --profile calculator "What is 12 * 12?"
  preamp run -p plans/calculator.yaml --limit max_tool_calls=3 "compute (12.5 - 4) ^ 2 / 3"
  echo "Hello" | preamp run -p plans/minimal.yaml --output-format json
`,
  run,
};

const MORE_FORMATS = ["json-trace"] as const;

async function run(args: Arguments, io: Io): Promise<number> {
  const format = readFormat(args, MORE_FORMATS);
  const settings = await readSettings(args, io);
  refuseSession(args, settings);
  const asked = await readRequest(args, io, settings);
  const style = styleOf(io.err);
  const display = createRunDisplay(io, format === "text");
  const { progress, answer, warnings } = display;
  settings.warnings.forEach((text) => warnings.add(text));
  const runtime = createRuntime({
    policy: settings.policy,
    plans: settings.plans,
    home: settings.home,
    sources: settings.sources,
    secrets: settings.api_keys,
    // the error of the run itself is written at its end
    log: (level, event, facts) => {
      if (event === "module_console") return progress.note(consoleText(facts));
      if (level === "info" || event === "execution_failed") return;
      warnings.add(`${event}: ${messageText(facts.message ?? facts)}`, facts.message);
    },
  });
  redirectConsole((_level, text) => progress.note(consoleText({ module: "console", text })));
  let handle: RunHandle | undefined;
  const unlisten = onCtrlC(io, display, runtime, () => handle);
  try {
    handle = await create(runtime, asked, io, display, args.has("strict"));
    warnings.addAll(handle.current().warnings);
    const ended = await follow(runtime, handle, display);
    warnings.addAll(ended.warnings);
    const answered = ended.status === "completed" || ended.status === "incomplete";
    answer?.finish(answered && ended.output_text !== "" ? ended.output_text : null);
    progress.close();
    if (ended.error !== null) {
      io.err.write(`${style.red("error:")} ${messageText(ended.error.message)} (${ended.error.code})\n`);
    }
    io.err.write(`${summaryLine(ended, style)}\n`);
    if (format !== "text") await writeRun(runtime, ended, format, io);
    const code = exitOfStatus(ended.status);
    if (code !== EXIT.done || !args.has("strict") || warnings.count === 0) return code;
    io.err.write(`${style.red("error:")} ${strictText(warnings.count)}\n`);
    return EXIT.failed;
  } catch (error) {
    if (!(error instanceof WarningsFailure)) throw error;
    progress.close();
    io.err.write(`${style.red("error:")} Cannot start the run: ${strictText(warnings.count)}\n`);
    return EXIT.failed;
  } finally {
    answer?.breakLine();
    progress.close();
    unlisten();
    await runtime.close();
  }
}

/** Thrown before the first step of a run that must not have warnings. */
class WarningsFailure extends Error {}

function strictText(count: number): string {
  return `--strict takes no warning: there ${count === 1 ? "was 1" : `were ${count}`}`;
}

async function create(
  runtime: Runtime,
  { request, base_url, plan_name }: Asked,
  io: Io,
  { progress, warnings }: RunDisplay,
  strict: boolean,
): Promise<RunHandle> {
  const admit = (run: Run) => {
    warnings.addAll(run.warnings);
    if (warnings.count > 0) throw new WarningsFailure();
  };
  try {
    return await runtime.runs.create(request, TERMINAL, {
      ask: askAt(io, progress),
      ...(strict ? { admit } : {}),
      ...(base_url === undefined ? {} : { base_url }),
    });
  } catch (error) {
    const about_plan = errorCode(error) !== undefined && (error as PreampError).details?.length > 0; // ours, by its code
    throw about_plan ? new DocumentFailure(plan_name, error) : error;
  }
}

/** Displays every entry, then resolves to the run as it ended. */
async function follow(
  runtime: Runtime,
  handle: RunHandle,
  { entry }: RunDisplay,
): Promise<Run> {
  for await (const entries of runtime.runs.follow(TERMINAL, handle.id, {})) entries.forEach(entry);
  return await handle.settled("end");
}

async function writeRun(runtime: Runtime, run: Run, format: "json" | "json-trace", io: Io): Promise<void> {
  if (format === "json") return writeJson(io, run);
  const { events, replay } = await runtime.runs.recording(TERMINAL, run.id);
  // the plan and the session as they were: `preamp replay` needs them
  writeJson(io, { run, events, replay: withoutSecrets(replay) });
}

/** First after the step that runs, then at once, then without waiting (behaviour.md §15). */
function onCtrlC(
  io: Io,
  { progress, answer }: RunDisplay,
  runtime: Runtime,
  current: () => RunHandle | undefined,
): () => void {
  let times = 0;
  return io.onStop(() => {
    const handle = current();
    times++;
    if (times > 2 || !handle) {
      answer?.finish(null);
      progress.close();
      io.exit(EXIT.interrupted);
    }
    progress.note(
      times === 1
        ? "Stopping after this step; Ctrl-C again stops at once."
        : "Stopping at once; Ctrl-C again ends the process.",
    );
    const mode = times === 1 ? "graceful" : "immediate";
    runtime.runs.cancel(TERMINAL, handle.id, mode).catch((error) =>
      progress.note(`error: ${errorMessage(error)}`)
    );
  });
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

/** Returns what a module wrote to its console as one printable line. */
function consoleText({ module, text }: JsonObject): string {
  return `${messageText(module)}: ${messageText(text)}`;
}

/** Returns what a run started from with the secrets of its plans redacted; the rest is the conversation, which must replay. */
function withoutSecrets({ plan, agents, ...rest }: RunInput): RunInput {
  const redactor = new Redactor();
  return {
    ...rest,
    plan: redactor.redact(plan),
    ...(agents ? { agents: agents.map((agent) => ({ ...agent, plan: redactor.redact(agent.plan) })) } : {}),
  };
}
