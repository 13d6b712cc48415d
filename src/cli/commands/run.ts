/** `preamp run`: runs a prompt in this process. Progress and questions go to stderr, the answer or JSON to stdout. */
import { createRuntime } from "../../app/runtime.ts";
import type { Runtime } from "../../app/types.ts";
import { Redactor } from "../../policy/redact.ts";
import type { RunInput } from "../../runs/types.ts";
import type { Run, RunHandle } from "../../runs/types.ts";
import { errorCode, errorMessage, type PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { askAt } from "../terminal/approval_prompt.ts";
import { type Command, TERMINAL } from "../command.ts";
import { DocumentFailure, EXIT, exitOfStatus } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, readFormat, writeJson } from "../output_format.ts";
import { messageText, summaryLine } from "../terminal/progress_lines.ts";
import { createRunDisplay, type RunDisplay } from "../run_display.ts";
import { type LocalRunRequest, readRequest } from "../run_request.ts";
import { policyFlags, readSettings, settingFlags, type Settings } from "../settings.ts";
import { MODEL_FLAG, PLAN_FLAG } from "./plan_command.ts";
import { redirectConsole } from "../stray_output.ts";
import { styleOf } from "../terminal/format.ts";
import { type OpenedStore, openSettingsStore } from "../store.ts";

const OWN_FLAGS: readonly Flag[] = [
  MODEL_FLAG,
  PLAN_FLAG,
  { name: "profile", value: "NAME", help: "name of a plan in plans/ or $PREAMP_HOME/plans/" },
  { name: "bundle", value: "NAME", help: "the same as --profile" },
  { name: "limit", value: "NAME=VALUE", many: true, help: "lower a limit, such as max_cost_usd=0.10" },
  {
    name: "session",
    value: "ID|new|last",
    help: "keep the conversation in the store: continue one, begin one, or continue the last one",
  },
  { name: "strict", help: "exit 1 on any warning; do not start a run that has warnings" },
  ...formatFlags({
    help: "the answer (default), the run object, or {run, events, replay} for preamp replay",
    more: ["json-trace"],
  }),
  ...settingFlags(["plans", "store", "frozen"]),
];

/** The command. */
export const command: Command = {
  usage: 'run [flags] ["prompt"]',
  summary:
    "Runs a prompt in this process. The default prompt is stdin, the default plan plans/default.yaml, else a demo agent.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Progress and warnings go to stderr, the answer to stdout. A terminal displays every text of the model as it arrives.
Otherwise stdout gets only the answer: streamed if the plan has no tools, else when the last response is complete.

Without a terminal the default of an approval applies at once. Ctrl-C stops the run after its current step, a second
Ctrl-C stops it at once, a third one ends the process. Text that has arrived is kept. The exit code is 130.
Each setting of preamp.yaml is also a flag, such as --limits.tool_timeout_s 5; preamp help serve lists them.

-m runs the demo agent, or the plan of -p or --profile, on a model; the key is in the variable that preamp provider list
shows. PREAMP_MODEL is the model of runs without a plan.

  preamp run "What is 6 × 7?"
  preamp run -m anthropic/claude-sonnet-5-5 "What is 6 × 7?"
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
  const local = await readRequest(args, io, settings);
  const style = styleOf(io.err);
  const display = createRunDisplay(io, format === "text");
  const { progress, answer, warnings } = display;
  settings.warnings.forEach((text) => warnings.add(text));
  const { store, warning } = await openRunStore(args, settings);
  if (warning !== null) warnings.add(warning);
  const runtime = createRuntime({
    ...(store ? { store } : {}),
    policy: settings.policy,
    plans: settings.plans,
    home: settings.home,
    sources: settings.sources,
    secrets: settings.api_keys,
    // the error of the run is printed at its end
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
    const session_id = await sessionOf(args.value("session"), runtime);
    if (session_id !== undefined) local.request.session_id = session_id;
    handle = await create(runtime, local, io, display, args.has("strict"));
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
    if (store) io.err.write(style.dim(`Continue with: preamp run --session ${ended.session_id} "…"`) + "\n");
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

/** Thrown before the first step of a run with `--strict` that has warnings. */
class WarningsFailure extends Error {}

function strictText(count: number): string {
  return `--strict does not allow warnings, and there ${count === 1 ? "was 1" : `were ${count}`}`;
}

async function create(
  runtime: Runtime,
  { request, base_url, plan_name }: LocalRunRequest,
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
    const code = errorCode(error);
    const has_places = code !== undefined && (error as PreampError).details?.length > 0; // identified by its code
    throw has_places && code !== "request_invalid" ? new DocumentFailure(plan_name, error) : error;
  }
}

/** Displays every entry, then resolves to the ended run. */
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
  // `preamp replay` needs the plan and the session at the start of the run
  writeJson(io, { run, events, replay: withoutSecrets(replay) });
}

/** The first Ctrl-C cancels after the current step, the second at once, the third ends the process. */
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
        ? "Stopping after this step; press Ctrl-C again to stop at once."
        : "Stopping at once; press Ctrl-C again to end the process.",
    );
    const mode = times === 1 ? "graceful" : "immediate";
    runtime.runs.cancel(TERMINAL, handle.id, mode).catch((error) =>
      progress.note(`error: ${errorMessage(error)}`)
    );
  });
}

/** Opens the store: with `--session` it lasts, so that the conversation can be continued. */
async function openRunStore(args: Arguments, settings: Settings): Promise<OpenedStore> {
  const id = args.value("session");
  if (id !== undefined && settings.store === "memory") {
    throw new UsageError(
      `Cannot continue session ${JSON.stringify(id)}: the store is memory, which ends with its process; ` +
        "leave out --store memory",
    );
  }
  return await openSettingsStore(settings, id !== undefined);
}

/**
 * Returns the id of the session to continue; undefined for a new one.
 * @throws {UsageError} for `last` when there is no session.
 */
async function sessionOf(text: string | undefined, { runs }: Runtime): Promise<string | undefined> {
  if (text === undefined || text === "new") return undefined;
  if (text !== "last") return text;
  const { data } = await runs.sessions.list(TERMINAL, {});
  const own = data.filter(({ parent_id }) => parent_id === null); // not those of sub-agents
  const last = own.toSorted((a, b) => b.last_activity.localeCompare(a.last_activity))[0];
  if (last) return last.id;
  throw new UsageError(
    "Cannot continue the last session: no session is stored; begin one with --session new",
  );
}

/** Returns a module's console output as one printable line. */
function consoleText({ module, text }: JsonObject): string {
  return `${messageText(module)}: ${messageText(text)}`;
}

/** Returns the input of a run with secrets redacted in its plans. The conversation is unchanged, for replay. */
function withoutSecrets({ plan, agents, ...rest }: RunInput): RunInput {
  const redactor = new Redactor();
  return {
    ...rest,
    plan: redactor.redact(plan),
    ...(agents ? { agents: agents.map((agent) => ({ ...agent, plan: redactor.redact(agent.plan) })) } : {}),
  };
}
