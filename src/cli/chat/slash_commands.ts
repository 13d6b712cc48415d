/** The commands of a conversation: lines that begin with a slash. */
import { createModuleTable } from "../../app/module_table.ts";
import { usableModels } from "../../app/provider_service.ts";
import { readModelChoice } from "../../plan/model_choice.ts";
import { NO_MODE } from "../../plan/modes.ts";
import type { ModelRequest, SessionObject } from "../../runs/types.ts";
import type { FoundCommand } from "../../sdk/contracts.ts";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { didYouMean } from "../../sdk/findings.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { filePath, locate } from "../../settings/paths.ts";
import { counted, tableText, wrapText } from "../terminal/format.ts";
import { dollars, formatValue, messageText } from "../terminal/progress_lines.ts";
import type { Conversation } from "./conversation.ts";
import { scopeText } from "./allowed.ts";
import { pastMarkdown, pastParts, showPast } from "./past.ts";
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
  context: { usage: "/context", summary: "show what fills the model's window", run: showContext },
  compact: {
    usage: "/compact",
    summary: "continue with a summary of the conversation in place of it",
    run: compact,
  },
  clear: { usage: "/clear", summary: "begin a new conversation with the same agent", run: clear },
  export: {
    usage: "/export [FILE]",
    summary: "write the conversation to a file, as Markdown",
    run: exportTo,
  },
  permissions: {
    usage: "/permissions",
    summary: "show what is allowed without a question, and take it back",
    run: permissions,
  },
  undo: {
    usage: "/undo [N] [conversation]",
    summary: "take files, and if wanted the conversation, back to before an answer",
    run: undo,
  },
  quit: { usage: "/quit", summary: "leave (also Ctrl-D)", run: (chat) => chat.leave() },
};

/** A command as it is completed. */
export interface CommandName {
  readonly name: string;
  readonly description: string;
}

/** The commands by name, for completion. */
export const COMMAND_NAMES: readonly CommandName[] = Object
  .entries(
    COMMANDS,
  ).map(([name, { summary }]) => ({ name, description: summary }));

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
  const { input, view } = chat.options;
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
    ["@FILE", "send a file or a picture along"],
    ["!COMMAND", "run a command yourself; the agent reads its output with the next message"],
    ["Enter", "send; while the agent works, it reads the message before its next step"],
    ["\\ Enter", "continue in the next line; pasted lines stay together"],
    ["Tab", "complete a command or a file"],
    ["Up, Down", "earlier messages; Ctrl-R searches them"],
    ["Ctrl-O", "show all output of the last tool"],
    ["Ctrl-C", "stop the answer; at a tool, again: stop the tool; at an empty line, twice: leave"],
  ];
  const all = [...rows, ...keys] as [string, string][];
  const width = Math.max(...all.map(([name]) => name.length));
  const room = input.asks ? Math.max(20, view.columns() - width - 4) : Infinity;
  const wrapped = all.flatMap(([name, does]) =>
    wrapText(does, room).map((line, index) => [index === 0 ? name : "", line])
  );
  view.say(tableText(wrapped, "  ").trimEnd());
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
    const { data } = await usableModels({ modules: createModuleTable(), env: chat.options.env });
    const models = data.map(({ model }) => model);
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
  view.showModel(chosen);
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
  if (input.asks) await showPast(runtime, chosen, view);
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

const SUMMARY_REQUEST =
  "Call no tool. Summarise this conversation so that someone else can continue it without " +
  "reading it: what is wanted, what was done and decided, which files and commands matter, what is left to do.";

async function compact(chat: Conversation): Promise<void> {
  const { view } = chat.options;
  if (chat.session_id === null) return view.say("There is nothing to summarise yet.");
  await chat.send(SUMMARY_REQUEST);
  const { status, output_text = "" } = chat.last_run ?? {};
  if (status !== "completed" || output_text.trim() === "") {
    return view.say("The conversation stays as it is: there is no summary.");
  }
  await chat.restart(`Summary of the conversation so far:\n\n${output_text}`);
  view.say("The conversation continues with this summary; /sessions has the whole of it.");
}

async function clear(chat: Conversation): Promise<void> {
  await chat.restart();
  chat.options.view.say("A new conversation; /sessions has the earlier one.");
}

async function exportTo(
  { options: { runtime, view, workspace }, session_id }: Conversation,
  argument: string,
) {
  if (session_id === null) return view.say("There is nothing to export yet.");
  const parts = await pastParts(runtime, session_id);
  const { metadata: { name } } = await runtime.runs.sessions.get(TERMINAL, session_id);
  const file = argument === "" ? `conversation-${session_id}.md` : argument;
  const url = locate(file, workspace);
  try {
    const text = pastMarkdown(typeof name === "string" ? name : session_id, parts);
    await Deno.writeTextFile(url, text, { createNew: true });
  } catch (error) {
    const fact = error instanceof Deno.errors.AlreadyExists ? "there is such a file" : errorMessage(error);
    throw new PreampError("request_invalid", `Cannot write ${JSON.stringify(file)}: ${fact}`);
  }
  view.say(`Written: ${messageText(filePath(url))}`);
}

async function permissions({ options: { allowed, input, view } }: Conversation): Promise<void> {
  const { rules } = allowed;
  if (rules.length === 0) {
    return view.say("Nothing is allowed without a question, beyond what the plan says.");
  }
  const rows = rules.map((one) => ({
    value: one,
    label: formatValue(one.rule),
    hint: scopeText(one.scope),
  }));
  if (!input.asks) return rows.forEach(({ label, hint }) => view.say(`${label} (${hint})`));
  const removed = await input.choose<typeof rules[number] | null>(
    "Allowed without a question: ask again about",
    [
      ...rows,
      { value: null, label: "None of them" },
    ],
  );
  if (removed === null) return;
  await allowed.remove(removed);
  view.say(`You are asked again about ${formatValue(removed.rule)}.`);
}

/** What fills the window, by the role of the messages. */
const FILLS: Readonly<Record<string, string>> = {
  system: "instructions",
  developer: "instructions",
  user: "your messages",
  assistant: "answers and calls",
  tool: "results of tools",
};

async function showContext(
  { options: { runtime, view }, session_id, last_run }: Conversation,
): Promise<void> {
  const run = last_run ??
    (session_id === null ? undefined : (await runtime.runs.list(TERMINAL, { session_id, limit: 1 })).data[0]);
  if (!run) return view.say("Nothing was sent yet.");
  let last: ModelRequest | undefined;
  let cursor: number | undefined;
  do {
    const page = await runtime.runs.requests(TERMINAL, run.id, cursor === undefined ? {} : { cursor });
    last = page.data.findLast((request) => request.session_id === run.session_id) ?? last;
    cursor = page.next_cursor === null ? undefined : Number(page.next_cursor);
  } while (cursor !== undefined);
  if (!last) return view.say("The last answer has called no model.");
  const sums = new Map<string, number>();
  last.messages.forEach(({ role }, index) => {
    const name = FILLS[role] ?? role;
    sums.set(name, (sums.get(name) ?? 0) + (last.tokens.messages[index] ?? 0));
  });
  sums.set("descriptions of tools", last.tokens.tools);
  const { budget } = run.context;
  const rows = [...sums].filter(([, tokens]) => tokens > 0).sort(([, a], [, b]) => b - a)
    .map(([name, tokens]) => contextRow(name, tokens, budget));
  rows.push(contextRow("in all", last.tokens.total, budget));
  if (budget > 0) rows.push(contextRow("free", Math.max(0, budget - last.tokens.total), budget));
  view.say(tableText(rows, "  ").trimEnd());
}

function contextRow(name: string, tokens: number, budget: number): string[] {
  const share = budget > 0 ? [`${Math.round(100 * tokens / budget)} %`] : [];
  return [name, `about ${tokens.toLocaleString("en-US")} tokens`, ...share];
}
