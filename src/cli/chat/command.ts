/** `preamp chat`: a conversation in the terminal. */
import { createRuntime } from "../../app/runtime.ts";
import type { PlanCheck, Runtime } from "../../app/types.ts";
import type { Policy } from "../../policy/policy.ts";
import { defaultPolicy } from "../../policy/settings.ts";
import { consoleMethods } from "../../sdk/console.ts";
import type { Found } from "../../sdk/contracts.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Arguments, readArguments, UsageError } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { DocumentFailure } from "../../settings/errors.ts";
import { EXIT } from "../errors.ts";
import { sayPlanOnce } from "../folder/said_plans.ts";
import { filePath } from "../../settings/paths.ts";
import { attachedFiles, filesText } from "../prompt_files.ts";
import { MODE_FLAG, MODEL_FLAG, PLAN_FLAG, readPlans } from "../plan_files.ts";
import { openSettingsStore } from "../../settings/settings.ts";
import { printIgnored, readSettings, type Settings, withSettings } from "../settings.ts";
import type { Io } from "../terminal/io.ts";
import { listText, shellWord, styleOf, wrapText } from "../terminal/format.ts";
import { storeFlags } from "../run_session.ts";
import { messageText } from "../terminal/progress_lines.ts";
import { AllowedCalls } from "./allowed.ts";
import { Chat } from "./chat.ts";
import type { ChatPlan } from "./conversation.ts";
import { readCoderPlan } from "./coder_plan.ts";
import { createDemo, type Demo } from "./demo.ts";
import { InputHistory } from "./history.ts";
import { LineInput, type PersonInput } from "../terminal/line_input.ts";
import { LineView } from "./line_view.ts";
import { findModel } from "./model_at_hand.ts";
import { type NamedSession, namedSessions } from "./sessions.ts";
import { showPast } from "./past.ts";
import { COMMAND_NAMES, type CommandName } from "./slash_commands.ts";
import type { ChatView } from "./view.ts";

export const command: Command = {
  usage: "chat [flags]",
  summary: "Starts a conversation with an agent in this folder. It asks before it changes a file.",
  flags: withSettings([
    MODEL_FLAG,
    MODE_FLAG,
    PLAN_FLAG,
    {
      name: "session",
      value: "NAME|ID|last",
      help: "continue the conversation of this name, or begin one with it",
    },
    { name: "plain", help: "write lines and draw no screen, such as for a screen reader" },
    { name: "demo", help: "play a scripted tour: no key, no model, no cost" },
  ], ["workspace", "store"]),
  details: () =>
    `Without a plan the agent is a coder: it reads and searches this folder, and a person allows each change. Without -m it
runs on the first provider whose key is set, else on a running Ollama.

A message that is typed while the agent works is read before its next step. @file sends a file or a picture along,
!command runs a command of yours. Ctrl-C stops the answer; at an empty line, twice leaves. /help lists the commands, such
as /model, /undo and /context. Messages are kept in chat_history in $PREAMP_HOME, conversations in the store. Files of this folder that act without being named
(preamp.yaml, .env, .preamp/sources.yaml) are used once you trust it; see preamp help trust.

In a pipe each line is a message; calls that need an approval are denied, because no one can be asked.

  preamp chat
  preamp chat -m ollama/qwen3:8b --workspace ~/project
  preamp chat -p plan.yaml --session release
  preamp chat --demo
`,
  max_arguments: 0,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const settings = await readSettings(args, io, { sources: true, variables: true });
  printIgnored(settings, io);
  const lines = new LineView(io);
  let view: ChatView = lines;
  for (const text of settings.warnings) view.warn(text);
  await using demo = args.has("demo") ? await openDemo(args) : null;
  const { store, warning } = demo ? { warning: null } : await openSettingsStore(settings, true);
  if (warning !== null) view.warn(warning);
  const workspace = demo?.folder ?? settings.workspace ?? io.cwd;
  await using runtime = createRuntime({
    ...(store ? { store } : {}),
    recovers: false, // a person decides whether to continue, with the next message
    policy: withPatience(settings.policy),
    env: settings.env,
    home: settings.home,
    workspace,
    sources: settings.sources,
    secrets: settings.api_keys,
    log: (level, event, facts) => {
      if (event === "module_console") view.note(consoleLine(facts));
      else if (level !== "info" && event !== "execution_failed") { // printed with the run's error
        view.warn(`${event}: ${messageText(facts.message ?? facts)}`, facts.message);
      }
    },
  });
  const writeConsole = (_level: string, text: string) => view.note(consoleLine({ module: "console", text }));
  Object.assign(console, consoleMethods(writeConsole, Deno.inspect)); // lines of modules, not in an open question
  const { session, name } = await sessionOf(args.value("session"), runtime);
  const planOfNew = async () => (await planOf(args, io, settings, null))?.plan ?? null;
  const begun = demo
    ? { plan: { plan: demo.plan }, title: "a scripted tour", is_coder: false }
    : await planOf(args, io, settings, session);
  if (begun === null) {
    if (!await wantsTour(io)) return EXIT.failed;
    return await run(readArguments(["--demo"], command.flags), io);
  }
  const used = await usedPlan(begun.plan, session?.id ?? null, runtime);
  const check = await checkOf(used, runtime);
  if (begun.plan.plan !== undefined) refuseInvalid(check, args);
  const found = await foundIn(used, runtime);
  await using opened = await openDisplay(io, settings, {
    is_plain: args.has("plain"),
    lines,
    workspace,
    commands: found.flatMap(({ commands = [] }) => commands)
      .map(({ name, summary }) => ({ name, description: `skill: ${messageText(summary)}` })),
  });
  const { input } = opened;
  view = opened.view;
  if (input.asks) {
    const folder = filePath(workspace).replace(/(.)\/$/, "$1");
    view.note(`${view.style.bold("Preamp chat")} · ${messageText(begun.title)} · ${messageText(folder)}`);
    const about = demo ? TOUR : begun.is_coder ? CODER : "";
    view.wrap(`${about} /help lists commands and keys, Ctrl-D leaves.`.trimStart());
  }
  const uses = [...demo ? [] : settings.folder.names, ...found.map(({ label }) => label)].map(messageText);
  if (uses.length > 0) view.wrap(`Of this folder it uses ${listText(uses)}.`);
  const active = check?.modes?.find(({ active }) => active);
  if (active) view.wrap(`It is in the mode ${messageText(active.name)}: ${messageText(active.decides)}.`);
  view.showModel(begun.plan.model ?? begun.title);
  if (session && input.asks) await showPast(runtime, session.id, view);
  const chat = new Chat({
    io,
    env: settings.env,
    runtime,
    input,
    view,
    plan: begun.plan,
    newPlan: demo ? () => Promise.resolve(begun.plan) : planOfNew,
    session_id: session?.id ?? null,
    session_name: name,
    modes: async (plan, session_id) =>
      (await checkOf(await usedPlan(plan, session_id, runtime), runtime))?.modes ?? [],
    promptCommands: async (plan, session_id) =>
      (await foundIn(await usedPlan(plan, session_id, runtime), runtime)).flatMap(({ commands = [] }) =>
        commands
      ),
    allowed: await AllowedCalls.open(settings.home, demo ? null : workspace),
    workspace,
    ...(demo ? { first_messages: [demo.prompt] } : {}),
  });
  const code = await chat.run();
  await opened[Symbol.asyncDispose]();
  if (input.asks && !demo && chat.session_id !== null && store) {
    io.out.write(lines.style.dim(`Return with: ${returnText(args, chat.session_id)}`) + "\n");
  }
  return code;
}

/** Returns the command that continues a conversation. */
function returnText(args: Arguments, session_id: string): string {
  const workspace = args.value("workspace");
  return [
    "preamp chat",
    ...workspace === undefined ? [] : ["--workspace", shellWord(workspace)],
    ...storeFlags(args),
    "--session",
    session_id,
  ].join(" ");
}

/** Seconds that a person at the terminal has for an answer, unless the settings say otherwise: a day. */
const PATIENCE_S = 86_400;

function withPatience(policy: Policy): Policy {
  const { approval_timeout } = policy.limits;
  if (approval_timeout !== defaultPolicy().limits.approval_timeout) return policy;
  return { ...policy, limits: { ...policy.limits, approval_timeout: PATIENCE_S } };
}

function consoleLine({ module, text }: JsonObject): string {
  return `${messageText(module)}: ${messageText(text)}`;
}

const CODER = "The agent reads this folder, and asks before it changes a file or runs a command.";
const TOUR =
  "No model is called, and it costs nothing: the agent's words and steps are a script. The files are real, " +
  "in a temporary folder, and so are the questions: nothing is written unless you allow it.";

async function openDemo(args: Arguments): Promise<Demo> {
  const other = ["model", "mode", "plan", "session", "workspace"].find((flag) => args.has(flag));
  if (other !== undefined) {
    throw new UsageError(`Cannot use --demo with --${other}: the tour has its own plan, folder and script`);
  }
  return await createDemo();
}

/** Resolves to the plan of the conversation and its title; to null, after a message, without a model. */
async function planOf(
  args: Arguments,
  io: Io,
  { policy, workspace, env }: Settings,
  session: NamedSession | null,
): Promise<{ plan: ChatPlan; title: string; is_coder: boolean } | null> {
  const named = args.value("model");
  const mode = args.value("mode");
  const in_mode = mode === undefined ? {} : { mode };
  const chosen = { ...(named === undefined ? {} : { model: named }), ...in_mode };
  const files = args.all("plan");
  if (files.includes("-")) throw new UsageError("Cannot read the plan from stdin: chat reads messages there");
  if (files.length > 0) {
    const read = await readPlans(files, io);
    const { plan, base_url, name } = read;
    await sayPlanOnce(read, io, { workspace: workspace ?? io.cwd, env });
    return { plan: { plan, base_url, ...chosen }, title: name, is_coder: false };
  }
  if (session) return { plan: chosen, title: `${session.name}, continued`, is_coder: false };
  const model = named ?? (policy.model || undefined);
  const found = model === undefined ? await findModel(env) : { model, reason: null };
  if ("model" in found) {
    const { text, url } = await readCoderPlan();
    const title = found.reason === null ? found.model : `${found.model} (${found.reason})`;
    return {
      plan: { plan: text, base_url: url.href, model: found.model, ...in_mode },
      title,
      is_coder: true,
    };
  }
  const { bold } = styleOf(io.err);
  const known = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
  const [first = "", second = "", third = ""] = known.filter((name) => found.variables.includes(name));
  const said = found.local.map((sentence) => `, and ${messageText(sentence)}`).join("");
  const width = io.err.terminal ? io.err.columns() : Infinity;
  const ways: [command: string, what: string][] = [
    [`export ${first}=…`, `or ${second}, ${third}; preamp provider list shows all`],
    ["ollama pull qwen3:8b", "a model on this machine, without a key"],
    ["preamp chat --demo", "a tour without either"],
  ];
  const lines = wrapText(`There is no model to talk to: no key of a provider is set${said}.`, width);
  const widest = Math.max(...ways.map(([command]) => command.length));
  for (const [command, what] of ways) {
    const fits = widest + what.length + 4 <= width;
    lines.push(`  ${bold(command)}${fits ? `${" ".repeat(widest - command.length)}  ${what}` : ""}`);
    if (!fits) lines.push(...wrapText(what, width - 6).map((line) => `      ${line}`));
  }
  io.err.write(`${lines.join("\n")}\n`);
  return null;
}

/** Asks at a terminal whether to play the tour instead. */
async function wantsTour(io: Io): Promise<boolean> {
  const input = new LineInput(io, io.err);
  if (!input.asks) return false;
  return await input.choose("What now?", [
    { value: true, label: "Play the tour", letter: "t" },
    { value: false, label: "Leave", letter: "q" },
  ]) === true;
}

/** Resolves to the session to continue, or to the name of the one that begins. */
async function sessionOf(
  text: string | undefined,
  runtime: Runtime,
): Promise<{ session: NamedSession | null; name: string | null }> {
  if (text === undefined || text === "new") return { session: null, name: null };
  const all = await namedSessions(runtime);
  const session = text === "last" ? all[0] : all.find(({ id, name }) => id === text || name === text);
  if (session) return { session, name: null };
  if (text === "last") throw new UsageError("Cannot continue the last conversation: none is stored");
  if (text.startsWith("ses_")) {
    throw new UsageError(`Cannot continue session ${JSON.stringify(text)}: it is not stored`);
  }
  return { session: null, name: text };
}

/** Resolves to the plan of a conversation; for a continued session without one, that of its last run. */
async function usedPlan(plan: ChatPlan, session_id: string | null, { runs }: Runtime): Promise<ChatPlan> {
  if (plan.plan !== undefined || session_id === null) return plan;
  try {
    const { data: [last] } = await runs.list(TERMINAL, { session_id, limit: 1 });
    return last ? { ...plan, plan: (await runs.plan(TERMINAL, last.id)).plan } : plan;
  } catch {
    return plan; // that of the run is no longer stored
  }
}

/** Resolves to what a plan finds in the folder by itself. */
async function foundIn({ plan, base_url }: ChatPlan, { plans }: Runtime): Promise<readonly Found[]> {
  try {
    return plan === undefined ? [] : await plans.finds({ plan }, TERMINAL, placeOf(base_url));
  } catch {
    return []; // the run reports it
  }
}

/** Resolves to the check of a plan; to null without a plan. */
async function checkOf(
  { base_url, plan, ...request }: ChatPlan,
  { plans }: Runtime,
): Promise<PlanCheck | null> {
  return plan === undefined ? null : await plans.check({ ...request, plan }, TERMINAL, placeOf(base_url));
}

function placeOf(base_url: string | undefined): { base_url?: string } {
  return base_url === undefined ? {} : { base_url };
}

/** @throws {DocumentFailure} for an invalid plan, before the first message is typed. */
function refuseInvalid(check: PlanCheck | null, args: Arguments): void {
  const { errors = [], code } = check ?? {};
  const [first] = errors;
  if (!first) return;
  const failure = new PreampError(code ?? "plan_invalid", first.message, { details: errors });
  throw new DocumentFailure(args.all("plan").join(" + ") || "the coder's plan", failure);
}

/** Where a conversation is displayed and typed; closed with it. */
interface Display extends AsyncDisposable {
  readonly input: PersonInput;
  readonly view: ChatView;
}

/** Resolves to the screen, where the terminal has keys; else to lines. */
async function openDisplay(
  io: Io,
  { home }: Settings,
  { is_plain, lines, workspace, commands }: {
    is_plain: boolean;
    lines: LineView;
    workspace: URL;
    /** Commands of skills. */
    commands: readonly CommandName[];
  },
): Promise<Display> {
  const has_keys = io.in.terminal && io.out.terminal && io.env("TERM") !== "dumb" && !is_plain;
  const names = io.variables();
  if (!has_keys || names === null) {
    return { input: new LineInput(io, io.out), view: lines, [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  // the library of the screen reads such variables, and writes the screen to the file that one names
  for (const name of names) if (name.startsWith("PI_")) Deno.env.delete(name);
  const history = new InputHistory(home && new URL("chat_history", home), (text) => lines.warn(text));
  const [{ onTerminalGone, openScreen }, { ChatScreen }] = await Promise.all([
    import("./screen/terminal.ts"),
    import("./screen/chat_screen.ts"),
    history.load(),
  ]);
  const screen = new ChatScreen({
    tui: openScreen(),
    style: lines.style,
    history,
    commands: [...COMMAND_NAMES, ...commands],
    folder: filePath(workspace).replace(/\/?$/, "/"),
    describe: async (text) => filesText(await attachedFiles(text, { folder: workspace, names_texts: true })),
    monotonic: () => io.monotonic(),
  });
  const crash = () => { // before the error is printed
    try {
      screen.close();
    } catch { /* the terminal is gone */ }
  };
  for (const event of ["error", "unhandledrejection", "unload"]) globalThis.addEventListener(event, crash);
  const unlisten = onTerminalGone(() => io.exit(EXIT.interrupted)); // "unload" ends what tools have started
  screen.open();
  return {
    input: screen,
    view: screen,
    [Symbol.asyncDispose]() {
      for (const event of ["error", "unhandledrejection", "unload"]) {
        globalThis.removeEventListener(event, crash);
      }
      unlisten();
      screen.close();
      return Promise.resolve();
    },
  };
}
