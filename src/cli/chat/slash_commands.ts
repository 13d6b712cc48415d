/** The commands of a conversation: lines that begin with a slash. */
import { createModuleTable } from "../../app/module_table.ts";
import { readModelChoice } from "../../plan/model_choice.ts";
import { NO_MODE } from "../../plan/modes.ts";
import type { SessionObject } from "../../runs/types.ts";
import type { FoundCommand } from "../../sdk/contracts.ts";
import { PreampError } from "../../sdk/errors.ts";
import { didYouMean } from "../../sdk/findings.ts";
import { TERMINAL } from "../commands.ts";
import { counted, tableText } from "../terminal/format.ts";
import { dollars, formatValue, messageText } from "../terminal/progress_lines.ts";
import type { Conversation } from "./conversation.ts";
import { modelsAtHand } from "./model_at_hand.ts";
import { namedSessions } from "./sessions.ts";
import { undo } from "./undo.ts";

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  run(chat: Conversation, argument: string): Promise<void> | void;
}

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { usage: "/help", summary: "show these commands and keys", run: help },
  cost: { usage: "/cost", summary: "show the tokens and the cost of this conversation", run: cost },
  model: { usage: "/model [PROVIDER/MODEL]", summary: "choose the model of the next answers", run: model },
  mode: { usage: "/mode [NAME]", summary: "put the agent in a mode of its plan; none: no mode", run: mode },
  sessions: {
    usage: "/sessions [NAME]",
    summary: "continue an earlier conversation, or begin one",
    run: sessions,
  },
  replay: {
    usage: "/replay",
    summary: "run the last answer again on its recorded model calls and tools, and compare",
    run: replay,
  },
  undo: {
    usage: "/undo [N] [conversation]",
    summary: "take files, and if wanted the conversation, back to before an answer",
    run: undo,
  },
  quit: { usage: "/quit", summary: "leave (also Ctrl-D)", run: (chat) => chat.leave() },
};

/** Returns whether a line is a command: a slash and a word. A path such as `/etc/hosts` is no command. */
export function isCommand(line: string): boolean {
  return /^\/[a-z][a-z0-9-]*(\s|$)/.test(line.trim());
}

/**
 * Runs a command; one of a skill is sent, because the skill reads it. @throws {PreampError} `request_invalid`
 * for an unknown one.
 */
export async function runSlashCommand(line: string, chat: Conversation): Promise<void> {
  const [word = "", ...rest] = line.trim().slice(1).split(/\s+/);
  const command = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
  if (!command) {
    const names = (await promptCommands(chat)).map(({ name }) => name);
    if (names.includes(word)) return await chat.send(line.trim());
    const meant = didYouMean(word, [...Object.keys(COMMANDS), ...names]);
    const advice = meant === undefined ? "/help lists the commands" : `did you mean /${meant}?`;
    throw new PreampError("request_invalid", `There is no command /${formatValue(word)}: ${advice}`);
  }
  await command.run(chat, rest.join(" "));
}

function promptCommands({ options, plan, session_id }: Conversation): Promise<readonly FoundCommand[]> {
  return options.promptCommands(plan, session_id);
}

/** Most commands of skills that /help lists, and most characters of what each does. */
const MAX_LISTED = 20;
const MAX_SUMMARY = 80;

async function help(chat: Conversation): Promise<void> {
  const { view } = chat.options;
  const of_skills = await promptCommands(chat);
  const rows = Object.values(COMMANDS).map(({ usage, summary }) => [usage, summary]);
  rows.push(
    ...of_skills.slice(0, MAX_LISTED).map(({ name, summary }) => [
      `/${formatValue(name)}`,
      `skill: ${
        messageText(summary.length > MAX_SUMMARY ? `${summary.slice(0, MAX_SUMMARY - 1)}…` : summary)
      }`,
    ]),
  );
  if (of_skills.length > MAX_LISTED) rows.push(["/…", `${of_skills.length - MAX_LISTED} more skills`]);
  const keys = [
    ["Enter", "send; while the agent works, a line is read before its next step"],
    ["\\ Enter", "continue in the next line; pasted lines stay together"],
    ["Up, Down", "earlier messages"],
    ["Ctrl-C", "stop the answer; twice: leave"],
  ];
  view.say(tableText([...rows, ...keys], "  ").trimEnd());
}

async function cost({ options: { runtime, view }, session_id, last_run }: Conversation): Promise<void> {
  if (session_id === null) return view.say("Nothing was used yet.");
  const { run_count, status } = await runtime.runs.sessions.get(TERMINAL, session_id);
  const { total_input_tokens = 0, total_output_tokens = 0, cost_usd } = status;
  const usd = (value: unknown) => typeof value === "string" ? dollars(value) : "unknown";
  const tokens = (sent: unknown, answered: unknown) =>
    `${Number(sent).toLocaleString("en-US")} tokens sent, ${
      Number(answered).toLocaleString("en-US")
    } answered`;
  const rows = [[
    counted(run_count, "answer"),
    tokens(total_input_tokens, total_output_tokens),
    usd(cost_usd),
  ]];
  if (last_run) {
    const { input_tokens, output_tokens, cost_usd } = last_run.usage;
    rows.push(["the last one", tokens(input_tokens, output_tokens), usd(cost_usd)]);
  }
  view.say(tableText(rows, "  ").trimEnd());
}

async function model(chat: Conversation, argument: string): Promise<void> {
  const { options: { input, view } } = chat;
  let chosen: string | null = argument;
  if (argument === "") {
    const models = await modelsAtHand(chat.options.env);
    if (models.length === 0) {
      return view.say(
        "No key is set and no local server runs: preamp provider list shows the variables of the keys.",
      );
    }
    if (!input.asks) return models.forEach((name) => view.say(formatValue(name)));
    chosen = await input.choose("Model", models.map((name) => ({ value: name, label: formatValue(name) })));
    if (chosen === null) return;
  }
  readModelChoice(chosen, createModuleTable().ids);
  chat.plan = { ...chat.plan, model: chosen };
  view.say(`The next answers come from ${formatValue(chosen)}.`);
}

async function mode(chat: Conversation, argument: string): Promise<void> {
  const { options: { input, modes, view }, plan, session_id } = chat;
  const known = await modes(plan, session_id);
  if (known.length === 0) return view.say("This plan has no modes.");
  const rows = [...known, { name: NO_MODE, active: !known.some(({ active }) => active), decides: "no mode" }];
  let chosen: string | null = argument;
  if (argument === "") {
    const labels = rows.map(({ name, active, decides }) => ({
      value: name,
      label: `${messageText(name)}${active ? " (now)" : ""}`,
      hint: messageText(decides),
    }));
    if (!input.asks) return labels.forEach(({ label, hint }) => view.say(`${label}: ${hint}`));
    chosen = await input.choose("Mode", labels);
    if (chosen === null) return;
  }
  const row = rows.find(({ name }) => name === chosen);
  if (row === undefined) {
    const names = rows.map(({ name }) => name);
    throw new PreampError(
      "request_invalid",
      `There is no mode ${formatValue(chosen)}: the modes are ${names.join(", ")}`,
    );
  }
  chat.plan = { ...plan, mode: row.name };
  view.say(
    row.name === NO_MODE
      ? "No mode from now on."
      : `Mode ${row.name} from now on: it ${messageText(row.decides)}.`,
  );
}

async function sessions(chat: Conversation, argument: string): Promise<void> {
  const { options: { input, runtime, view } } = chat;
  const found = await namedSessions(runtime);
  const named = argument === ""
    ? undefined
    : found.find(({ id, name }) => name === argument || id === argument);
  if (argument !== "" && !named) {
    throw new PreampError(
      "not_found",
      `There is no conversation ${JSON.stringify(argument)}: /sessions lists them`,
    );
  }
  const rows = found.map(({ id, name, session }) => ({
    id,
    label: formatValue(name),
    hint: factsOf(session),
  }));
  if (!named && !input.asks) return rows.forEach(({ label, hint }) => view.say(`${label} (${hint})`));
  const chosen = named?.id ?? await input.choose<string>("Conversation", [
    { value: "", label: "Begin a new one" },
    ...rows.map(({ id, label, hint }) => ({ value: id, label, hint })),
  ]);
  if (chosen === null) return;
  if (chosen === "") return await chat.begin() ? view.say("A new conversation.") : undefined;
  chat.continueIn(chosen);
  view.say(`This is ${formatValue(found.find(({ id }) => id === chosen)?.name)} again.`);
}

function factsOf({ run_count, last_activity }: SessionObject): string {
  return `${counted(run_count, "answer")}, ${last_activity.slice(0, 16).replace("T", " ")} UTC`;
}

async function replay({ options: { runtime, view }, last_run }: Conversation): Promise<void> {
  if (last_run === null) return view.say("There is no answer to replay yet.");
  const { equal, first_difference } = await runtime.runs.replay(TERMINAL, last_run.id);
  view.say(
    equal
      ? "The replay is equal: on the recorded answers of models and tools, the agent does the same again."
      : `The replay differs: ${messageText(first_difference?.message)}`,
  );
}
