/**
 * `preamp run`: runs a prompt in this process. Progress and questions go to stderr, the answer or JSON to
 * stdout.
 */
import { createRuntime } from "../../app/runtime.ts";
import type { Runtime } from "../../app/types.ts";
import type { Entry } from "../../kernel/host.ts";
import { withoutPlanSecrets } from "../../policy/plan_secrets.ts";
import { Redactor } from "../../policy/redact.ts";
import { skippedText } from "../../runs/run/run_projection.ts";
import type { Approval, Run, RunHandle, RunInput, Warning } from "../../runs/types.ts";
import { consoleMethods } from "../../sdk/console.ts";
import { type ErrorCode, errorCode, type ErrorDetail, errorMessage, PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { AnswerWriter } from "../terminal/answer_writer.ts";
import { type Arguments, formatFlags, formatOf, UsageError } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { DocumentFailure } from "../../settings/errors.ts";
import { EXIT, exitOfStatus } from "../errors.ts";
import { MODE_FLAG, MODEL_FLAG, PLAN_FLAG, profileOf } from "../plan_files.ts";
import { type LocalRunRequest, readRequest, STDIN_FLAG } from "../run_request.ts";
import { continuation, openRunStore, sessionOf } from "../run_session.ts";
import { printIgnored, readSettings, type Settings, type SettingsUse, withSettings } from "../settings.ts";
import { LineInput } from "../terminal/line_input.ts";
import { type Ask, questionsOf } from "../terminal/questions.ts";
import { jsonText, shellWord, styleOf } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import { createProgress, type Progress } from "../terminal/progress.ts";
import { StopKey } from "../terminal/stop_key.ts";
import { messageText, summaryLine } from "../terminal/progress_lines.ts";

export const command: Command = {
  usage: 'run [flags] ["prompt"]',
  summary:
    "Runs a prompt in this process. The default prompt is stdin, the default plan the one named default, else a demo agent.",
  flags: withSettings([
    MODEL_FLAG,
    MODE_FLAG,
    PLAN_FLAG,
    { name: "profile", value: "NAME", help: "name of a plan in $PREAMP_HOME/plans/ or plans/" },
    { name: "bundle", value: "NAME", help: "the same as --profile" },
    { name: "limit", value: "NAME=VALUE", many: true, help: "lower a limit, such as max_cost_usd=0.10" },
    {
      name: "session",
      value: "ID|NAME|new|last",
      help:
        "keep the conversation in the store: continue one of preamp sessions, begin one, or continue the last one; without it the default store is memory",
    },
    {
      name: "allow",
      value: "TOOL[:RULE]",
      many: true,
      help:
        "allow calls without asking: of a tool, or only commands such as 'bash:git *'; * matches anything",
    },
    { name: "yes", short: "y", help: "allow all calls of this run without asking" },
    STDIN_FLAG,
    {
      name: "file",
      value: "FILE",
      many: true,
      help: "send a file along with the prompt: text, at most 128 KiB of it, or a picture",
    },
    {
      name: "image",
      value: "FILE",
      many: true,
      help:
        "show the model a picture (PNG, JPEG, GIF, WebP, at most 3.75 MiB); @FILE.png in the prompt does too",
    },
    { name: "strict", help: "exit 1 on any warning; do not start a run that has warnings" },
    ...formatFlags({
      help: "the answer (default), the run object, or {run, events, replay} for preamp replay",
      more: ["json-trace"],
    }),
  ], ["plans", "workspace", "store", "frozen"]),
  details: () =>
    `Progress and warnings go to stderr, the answer to stdout. A terminal displays every text of the model as it arrives.
Otherwise stdout gets only the answer: streamed if the plan has no tools, else when the last response is complete.

Text that is piped in follows the prompt, in a fence: at most limits.max_body_bytes, more is an error.

Without a terminal no one can be asked: a call that needs an approval is denied at once, unless --allow or --yes allows
it, and the exit code is 4. The demo agent's calculator is not asked about then. Ctrl-C stops an answer at once: what
arrived of it stays in the conversation and counts as usage. A running tool ends first; a second Ctrl-C stops it at
once. The next one ends the process. The exit code is 130.
Each setting of preamp.yaml is also a flag, such as --limits.tool_timeout_s 5; preamp help serve lists them.

Named plans are those of $PREAMP_HOME/plans/, then those of plans/ in this folder. Files of this folder that act without
being named (preamp.yaml, .env, plans/, .preamp/sources.yaml) are used once you trust it; see preamp help trust.
-m runs the demo agent, or the plan of -p or --profile, on a model; the key is in the variable that preamp provider list
shows. PREAMP_MODEL is the model of runs without a plan.

  preamp run "What is 6 × 7?"
  preamp run -m anthropic/claude-sonnet-5-5 "What is 6 × 7?"
  preamp run -m anthropic/claude-sonnet-5-5 "What is wrong in @screenshot.png?"
  git diff | preamp run "Review this change"
  preamp run --profile calculator "What is 12 * 12?"
  preamp run -p plans/calculator.yaml --limit max_tool_calls=3 "compute (12.5 - 4) ^ 2 / 3"
  echo "Hello" | preamp run -p plans/minimal.yaml --output-format json
`,
  run,
};

/** Milliseconds that a run waits for a store that refuses its end: longer than a short outage. */
const STORE_END_MS = 5_000;

async function run(args: Arguments, io: Io): Promise<number> {
  const format = formatOf(args);
  const settings = await readSettings(args, io, { sources: true, variables: true, plans: plansUse(args) });
  printIgnored(settings, io);
  const local = await readRequest(args, io, settings);
  const input = new LineInput(io, io.err);
  const is_demo = await isDemo(args, local, settings);
  const allowedBy = await readAllowed(args, is_demo && !input.asks ? ["calculator"] : []);
  const style = styleOf(io.err);
  const display = createDisplay(io, format === "text");
  const { progress, answer, warnings } = display;
  const printError = (text: string) => io.err.write(`${style.red("error:")} ${text}\n`);
  for (const text of settings.warnings) warnings.add(text);
  const { store, warning } = await openRunStore(args, settings);
  if (warning !== null) warnings.add(warning);
  const failure_places = new Map<unknown, string>();
  const runtime = createRuntime({
    ...(store ? { store } : {}),
    recovers: false, // they are other prompts than this one
    policy: settings.policy,
    plans: settings.all_plans,
    env: settings.env,
    home: settings.home,
    workspace: settings.workspace ?? io.cwd,
    sources: settings.sources,
    secrets: settings.api_keys,
    log: (level, event, facts) => {
      if (event === "module_console") return progress.note(consoleText(facts));
      if (level === "info") return;
      const at = typeof facts.at === "string" ? ` at ${facts.at}` : "";
      if (event === "execution_failed") failure_places.set(facts.message, at); // printed with the run's error
      else warnings.add(`${event}: ${messageText(facts.message ?? facts)}${at}`, facts.message);
    },
  });
  const writeConsole = (_level: string, text: string) =>
    progress.note(consoleText({ module: "console", text }));
  Object.assign(console, consoleMethods(writeConsole, Deno.inspect)); // stdout carries only the answer
  let handle: RunHandle | undefined;
  let giving_up: ReturnType<typeof setTimeout> | undefined;
  const unlisten = onCtrlC(io, display, runtime, () => handle);
  try {
    const session_id = await sessionOf(args.value("session"), runtime);
    if (session_id !== undefined) local.request.session_id = session_id;
    let unstored: Run | undefined;
    const stopped = new AbortController();
    const endNotStored = (run: Run) => {
      giving_up = setTimeout(() => {
        unstored = run;
        warnings.add(
          "The run has ended, but not in the store: a server that uses the store will continue it",
        );
        stopped.abort();
      }, STORE_END_MS);
    };
    const hold = () => progress.hold();
    const ask = askUnlessAllowed(allowedBy, questionsOf({ io, input, output: io.err, style, hold }));
    handle = await create(runtime, local, display, {
      ask,
      strict: args.has("strict"),
      endNotStored,
      is_demo,
    });
    warnings.addAll(handle.current().warnings);
    const { signal } = stopped;
    for await (const entries of runtime.runs.follow(TERMINAL, handle.id, { signal })) {
      entries.forEach(display.entry);
    }
    clearTimeout(giving_up);
    const ended = unstored ?? await handle.settled("end");
    warnings.addAll(ended.warnings);
    const answered = ended.status === "completed" || ended.status === "incomplete";
    answer?.finish(answered && ended.output_text !== "" ? ended.output_text : null);
    progress.close();
    if (ended.error !== null) {
      const { code, message } = ended.error;
      const text = display.hasDisplayed(message) ? "The model call failed" : messageText(message);
      printError(`${text} (${code})${failure_places.get(message) ?? ""}`);
    }
    io.err.write(`${summaryLine(ended, style)}\n`);
    if (store && !unstored) io.err.write(style.dim(`Continue with: ${continuation(args, ended)}`) + "\n");
    if (format !== "text") {
      io.out.write(jsonText(format === "json" ? ended : await traceOf(runtime, ended), io.out));
    }
    if (format === "json-trace" && unstored) {
      printError("The trace does not have the last entries of the run, which are not in the store");
      return EXIT.failed;
    }
    const code = exitOfStatus(ended.status);
    const denied = ended.approvals.filter(({ decision }) => decision === "unanswered");
    if (denied.length > 0 && code === EXIT.done) {
      printError(unansweredText(denied));
      return EXIT.refused;
    }
    if (code !== EXIT.done || !args.has("strict") || warnings.count === 0) return code;
    printError(strictText(warnings.count));
    return EXIT.failed;
  } catch (error) {
    if (!(error instanceof WarningsFailure)) throw error;
    progress.close();
    printError(`Cannot start the run: ${strictText(warnings.count)}`);
    return EXIT.failed;
  } finally {
    clearTimeout(giving_up);
    answer?.breakLine();
    progress.close();
    unlisten();
    await runtime.close();
  }
}

/** The output of a run: progress and warnings on stderr, the answer on stdout. */
interface Display {
  progress: Progress;
  /** Absent when JSON is written to stdout. */
  answer: AnswerWriter | undefined;
  warnings: Warnings;
  stop_key: StopKey;
  /** Displays the next entry of the run's log. */
  entry(entry: Entry): void;
  /** Returns whether progress displays this message as that of the last failed model call. */
  hasDisplayed(message: string): boolean;
}

/**
 * Creates the writers of a run's output. When both write to one terminal, progress is cleared before the
 * answer.
 */
function createDisplay(io: Io, is_text: boolean): Display {
  const { out, err } = io;
  const together = is_text && out.terminal && err.terminal;
  const answer = is_text ? new AnswerWriter(out, together ? () => progress.clear() : undefined) : undefined;
  const seen = together ? answer : undefined;
  const live = err.terminal && io.env("TERM") !== "dumb";
  const progress = createProgress(err, {
    answer: seen,
    live: live ? { monotonic: () => io.monotonic() } : undefined,
  });
  const { yellow } = styleOf(err);
  const warnings = new Warnings((text) => progress.note(`${yellow("warning:")} ${messageText(text)}`));
  const stop_key = new StopKey();
  let provider_error: unknown;
  return {
    progress,
    answer,
    warnings,
    stop_key,
    entry(entry) {
      stop_key.take(entry);
      const { event, data } = entry;
      if (event === "provider:error" && isObject(data.error)) provider_error = data.error.msg;
      if (event === "module:skipped") warnings.add(skippedText(data));
      else if (event === "user:notification" && data.level !== "info") warnings.count++;
      answer?.take(entry);
      progress.entry(entry);
    },
    hasDisplayed: (message) => message === provider_error,
  };
}

/** The warnings of a run. Each is displayed once, even if several components report it. */
class Warnings {
  /** Number of warnings so far, including notifications displayed as warnings. */
  count = 0;
  readonly #display: (text: string) => void;
  readonly #seen = new Set<unknown>();

  constructor(display: (text: string) => void) {
    this.#display = display;
  }

  /** @param key Identifies the warning, whichever component reports it. Default: its text. */
  add(text: string, key: unknown = text): void {
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.count++;
    this.#display(text);
  }

  /** Adds the warnings of a run object. */
  addAll(warnings: readonly Warning[]): void {
    for (const { path, message } of warnings) this.add(path ? `${path}: ${message}` : message, message);
  }
}

/** Returns the rule that allows an approval without asking, or undefined. */
type AllowedBy = (approval: Approval) => string | undefined;

/** Returns whether a run begins with the demo plan, which must answer without a terminal too. */
async function isDemo(
  args: Arguments,
  { request }: LocalRunRequest,
  { all_plans }: Settings,
): Promise<boolean> {
  if (request.plan !== undefined || continues(args)) return false;
  return request.model !== undefined || await all_plans.find("default") === null;
}

/** Returns whether the run continues a session, with its plan unless there is another. */
function continues(args: Arguments): boolean {
  return args.has("session") && args.value("session") !== "new";
}

/** Returns the named plan that a run uses: the one that the command line names, or `default`. */
function plansUse(args: Arguments): NonNullable<SettingsUse["plans"]> | null {
  const has_other = args.has("plan") || args.has("model") || continues(args);
  const name = profileOf(args) ?? (has_other ? undefined : "default");
  return name === undefined ? null : { name };
}

/** Reads `--yes` and `--allow`. @throws {UsageError} for an invalid rule. */
async function readAllowed(args: Arguments, more: readonly string[]): Promise<AllowedBy> {
  if (args.has("yes")) return () => "--yes";
  const rules = [...args.all("allow"), ...more];
  if (rules.length === 0) return () => undefined;
  const { readAllowedCalls } = await import("../../app/allowed_calls.ts");
  try {
    return readAllowedCalls(rules);
  } catch (error) {
    throw new UsageError(`Cannot use --allow: ${errorMessage(error)}`, { cause: error });
  }
}

/** Returns a function that allows calls that a rule allows, and asks about everything else. */
function askUnlessAllowed(allowedBy: AllowedBy, ask: Ask): Ask {
  return (approval, signal) => {
    const rule = approval.limit ? undefined : allowedBy(approval); // --yes spends no more than the plan says
    return rule === undefined ? ask(approval, signal) : Promise.resolve({ decision: "allow", reason: rule });
  };
}

/** Returns which calls were denied because no one could be asked, and the flags that allow them. */
function unansweredText(denied: readonly Approval[]): string {
  const flags = new Set(denied.flatMap(({ tool_name, tool_input }) => {
    if (tool_name === null) return [];
    const command = tool_input?.command;
    const rule = typeof command === "string" && PLAIN_COMMAND.test(command) ? `:${command}` : "";
    return `--allow ${shellWord(messageText(tool_name + rule))}`;
  }));
  const what = denied.length === 1 ? "1 call was" : `${denied.length} calls were`;
  const advice = [...flags, "--yes, which allows all calls"].join(" or ");
  return `${what} denied, because no one could be asked. Run it at a terminal, or with ${advice}`;
}

/** A command that is its own rule for `--allow`: words without a pattern, and nothing for a shell to read. */
const PLAIN_COMMAND = /^[\w@%+=:,./ -]{1,80}$/;

/** Thrown before the first step of a run with `--strict` that has warnings. */
class WarningsFailure extends Error {}

function strictText(count: number): string {
  return `--strict does not allow warnings, and there ${count === 1 ? "was 1" : `were ${count}`}`;
}

interface CreateDeps {
  ask: Ask;
  strict: boolean;
  endNotStored: (run: Run) => void;
  /** Whether the plan is not the person's own. */
  is_demo: boolean;
}

async function create(
  runtime: Runtime,
  { request, base_url, plan_name }: LocalRunRequest,
  { warnings }: Display,
  { ask, strict, endNotStored, is_demo }: CreateDeps,
): Promise<RunHandle> {
  const admit = (run: Run) => {
    warnings.addAll(run.warnings);
    if (warnings.count > 0) throw new WarningsFailure();
  };
  try {
    return await runtime.runs.create(request, TERMINAL, {
      ask,
      endNotStored,
      ...(strict ? { admit } : {}),
      ...(base_url === undefined ? {} : { base_url }),
    });
  } catch (error) {
    const code = errorCode(error);
    const has_places = code !== undefined && (error as PreampError).details?.length > 0; // identified by its code
    if (!has_places || code === "request_invalid") throw error;
    const { message, details } = error as PreampError;
    // -m puts the model that it chooses first
    const is_written = ({ path }: ErrorDetail) =>
      !is_demo && (request.model === undefined || path !== "providers[0]");
    if (details.some(is_written)) throw new DocumentFailure(plan_name, error);
    const own = details.map(({ message }) => ({ path: "", message })); // no plan of the person's has this place
    throw new PreampError(code as ErrorCode, message, { cause: error, details: own });
  }
}

/** Resolves to what `preamp replay` needs: the run, its events, and the plan and the session at its start. */
async function traceOf(runtime: Runtime, run: Run): Promise<unknown> {
  const { events, replay } = await runtime.runs.recording(TERMINAL, run.id);
  return { run, events, replay: withoutSecrets(replay) };
}

/** Ctrl-C stops the answer or, after its end, the tool; then it ends the process. */
function onCtrlC(
  io: Io,
  { progress, answer, stop_key }: Display,
  runtime: Runtime,
  current: () => RunHandle | undefined,
): () => void {
  return io.onStop(() => {
    const handle = current();
    const stop = handle ? stop_key.press() : null;
    if (!handle || !stop) {
      answer?.finish(null);
      progress.close();
      io.exit(EXIT.interrupted);
    }
    progress.note(stop.text);
    runtime.runs.cancel(TERMINAL, handle.id, stop.mode).catch((error) =>
      progress.note(`error: ${errorMessage(error)}`)
    );
  });
}

/** Returns a module's console output as one printable line. */
function consoleText({ module, text }: JsonObject): string {
  return `${messageText(module)}: ${messageText(text)}`;
}

/**
 * Returns the input of a run with secrets redacted in its plans. The conversation is unchanged, for replay.
 */
function withoutSecrets({ plan, agents, ...rest }: RunInput): RunInput {
  const redactor = new Redactor();
  const redacted = (data: JsonObject) => redactor.redact(withoutPlanSecrets(data));
  return {
    ...rest,
    plan: redacted(plan),
    ...(agents ? { agents: agents.map((agent) => ({ ...agent, plan: redacted(agent.plan) })) } : {}),
  };
}
