/** `preamp chat`: a conversation in the terminal. */
import { createRuntime } from "../../app/runtime.ts";
import type { Runtime } from "../../app/types.ts";
import type { Policy } from "../../policy/policy.ts";
import { defaultPolicy } from "../../policy/settings.ts";
import { consoleMethods } from "../../sdk/console.ts";
import type { Found } from "../../sdk/contracts.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../commands.ts";
import { DocumentFailure } from "../../settings/errors.ts";
import { EXIT } from "../errors.ts";
import { sayPlanOnce } from "../folder/said_plans.ts";
import { filePath } from "../../settings/paths.ts";
import { MODE_FLAG, MODEL_FLAG, PLAN_FLAG, readPlans } from "../plan_files.ts";
import { openSettingsStore } from "../../settings/settings.ts";
import { printIgnored, readSettings, type Settings, withSettings } from "../settings.ts";
import type { Io } from "../terminal/io.ts";
import { listText } from "../terminal/format.ts";
import { messageText } from "../terminal/progress_lines.ts";
import { Chat } from "./chat.ts";
import type { ChatPlan } from "./conversation.ts";
import { readCoderPlan } from "./coder_plan.ts";
import { createDemo, type Demo } from "./demo.ts";
import { InputHistory } from "./history.ts";
import { LineInput, type PersonInput } from "../terminal/line_input.ts";
import { findModel } from "./model_at_hand.ts";
import { type NamedSession, namedSessions } from "./sessions.ts";
import { ChatView } from "./view.ts";

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
    { name: "demo", help: "play a scripted tour: no key, no model, no cost" },
  ], ["workspace", "store"]),
  details: () =>
    `Without a plan the agent is a coder: it reads and searches this folder, and a person allows each change. Without -m it
runs on the first provider whose key is set, else on a running Ollama.

A line that is typed while the agent works is read before its next step. Ctrl-C stops the answer, twice leaves. A line
that ends with \\ continues in the next one. /help lists the commands, such as /cost, /model and /sessions. Messages are
kept in chat_history in $PREAMP_HOME, conversations in the store. Files of this folder that act without being named
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
  const view = new ChatView(io);
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
  if (begun === null) return EXIT.failed;
  await checkPlan(begun.plan, args, runtime);
  const found = await foundIn(begun.plan, session?.id ?? null, runtime);
  const input = await openInput(io, settings, view);
  if (input.asks) {
    const folder = filePath(workspace).replace(/(.)\/$/, "$1");
    view.note(`${view.style.bold("Preamp chat")} · ${messageText(begun.title)} · ${messageText(folder)}`);
    const about = demo ? TOUR : begun.is_coder ? CODER : "";
    view.wrap(`${about} /help lists commands and keys, Ctrl-D leaves.`.trimStart());
  }
  const uses = [...demo ? [] : settings.folder.names, ...found.map(({ label }) => label)].map(messageText);
  if (uses.length > 0) view.wrap(`Of this folder it uses ${listText(uses)}.`);
  return await new Chat({
    io,
    env: settings.env,
    runtime,
    input,
    view,
    plan: begun.plan,
    newPlan: demo ? () => Promise.resolve(begun.plan) : planOfNew,
    session_id: session?.id ?? null,
    session_name: name,
    modes: async ({ plan, base_url, mode }, session_id) => {
      const used = plan ?? await lastPlanOf(session_id, runtime);
      const chosen = mode === undefined ? {} : { mode };
      const place = base_url === undefined ? {} : { base_url };
      return used === undefined
        ? []
        : (await runtime.plans.check({ plan: used, ...chosen }, TERMINAL, place)).modes ?? [];
    },
    promptCommands: async (plan, session_id) =>
      (await foundIn(plan, session_id, runtime)).flatMap(({ commands = [] }) => commands),
    ...(demo ? { first_messages: [demo.prompt] } : {}),
  }).run();
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
  const looked = found.map((place) => `  ${messageText(place)}\n`).join("");
  io.err.write(`There is no model to talk to. Looked for:
${looked}Set one of these variables, start Ollama, or name a model with -m PROVIDER/MODEL.
See how it works without one: preamp chat --demo
All commands: preamp help
`);
  return null;
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

/** Resolves to what the plan, or that of the session's last run, finds in the folder by itself. */
async function foundIn(
  { plan, base_url }: ChatPlan,
  session_id: string | null,
  runtime: Runtime,
): Promise<readonly Found[]> {
  const place = base_url === undefined ? {} : { base_url };
  try {
    const used = plan ?? await lastPlanOf(session_id, runtime);
    return used === undefined ? [] : await runtime.plans.finds({ plan: used }, TERMINAL, place);
  } catch {
    return []; // the run reports it
  }
}

async function lastPlanOf(session_id: string | null, { runs }: Runtime): Promise<JsonObject | undefined> {
  if (session_id === null) return undefined;
  const { data: [last] } = await runs.list(TERMINAL, { session_id, limit: 1 });
  return last && (await runs.plan(TERMINAL, last.id)).plan;
}

/** @throws {DocumentFailure} for an invalid plan, before the first message is typed. */
async function checkPlan(
  { plan, model, mode, base_url }: ChatPlan,
  args: Arguments,
  runtime: Runtime,
): Promise<void> {
  if (plan === undefined) return;
  const request = {
    plan,
    ...(model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { mode }),
  };
  const { errors, code } = await runtime.plans.check(
    request,
    TERMINAL,
    base_url === undefined ? {} : { base_url },
  );
  const [first] = errors;
  if (!first) return;
  const failure = new PreampError(code ?? "plan_invalid", first.message, { details: errors });
  throw new DocumentFailure(args.all("plan").join(" + ") || "the coder's plan", failure);
}

async function openInput(io: Io, { home }: Settings, view: ChatView): Promise<PersonInput> {
  const has_keys = io.in.terminal && io.out.terminal && io.env("TERM") !== "dumb";
  if (!has_keys) return new LineInput(io, io.out);
  const history = new InputHistory(home && new URL("chat_history", home), (text) => view.warn(text));
  const [{ TerminalInput }] = await Promise.all([import("./terminal_input.ts"), history.load()]);
  return new TerminalInput(history, { first: view.style.bold("> "), next: view.style.dim(". ") });
}
