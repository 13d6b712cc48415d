/** One line that says what an entry of the log is about. */
import { type Data, type Entry, messageOf, textOf } from "preamp/client";
import { dollars, tokens } from "../ui/units.ts";
import type { LogRow } from "./rows.ts";

const MAX_CHARS = 160;

/** What a row says, and how it looks. */
interface Brief {
  readonly text: string;
  readonly style: "" | "waiting" | "failed" | "done";
}

type Words = (data: Data) => string;

/** What to say about an entry, by its event; others say their first fields. */
const WORDS: Readonly<Record<string, Words>> = {
  "run:start": ({ forked_from, status }) => {
    const { run_id, seq } = (forked_from ?? {}) as Data;
    return run_id ? `continues ${run_id} after entry ${seq}` : words(status);
  },
  "run:status": ({ status }) => words(status),
  "run:limits": ({ raised_by }) => `raised by ${raised_by ?? "a person"}`,
  "run:steered": ({ text }) => line(text),
  "run:end": ({ run }) => statusOf(run as Data),
  "module:mounted": ({ module_id, type }) => `${module_id}, ${type}`,
  "module:skipped": ({ message }) => line(message),
  "session:state": ({ set }) => Object.keys(set as Data).join(", "),
  "session:end": statusOf,
  "session:cleanup": ({ ran }) => `${ran} ran`,
  "session:fork": ({ metadata }) => line((metadata as Data | undefined)?.agent),
  "execution:start": ({ prompt }) => line(prompt),
  "execution:end": statusOf,
  "prompt:submit": ({ prompt }) => line(prompt),
  "prompt:complete": ({ response_preview }) => line(response_preview),
  "provider:request": ({ provider, iteration }) => `${provider}, call ${iteration}`,
  "provider:response": ({ usage }) => usageOf(usage as Data),
  "provider:error": ({ error }) => line(messageOf(error)),
  "provider:retry": ({ error_message, delay }) =>
    `${line(error_message)}; again${Number(delay) > 0 ? ` in ${Number(delay).toFixed(1)} s` : ""}`,
  "content_block:start": ({ block_type, name }) => name ? `${words(block_type)} ${name}` : words(block_type),
  "content_block:end": ({ block }) => blockOf(block as Data),
  "tool:pre": ({ tool_name, tool_input }) => `${tool_name} ${line(tool_input)}`,
  "tool:post": ({ tool_name, result }) => {
    const { success, output, error } = (result ?? {}) as Data;
    return success === false
      ? `${tool_name}: ${line(messageOf(error ?? output))}`
      : `${tool_name} ${line(output)}`;
  },
  "tool:error": ({ tool_name, error }) => `${tool_name}: ${line(messageOf(error))}`,
  "approval:required": ({ prompt }) => line(prompt),
  "approval:granted": ({ tool_name, decision }) => `${tool_name ?? "limit"}: ${decision}`,
  "approval:denied": ({ tool_name, decision, reason }) =>
    `${tool_name ?? "limit"}: ${reason ? line(reason) : decision}`,
  "context:message": ({ message }) => {
    const { role, content } = message as Data;
    return `${role}: ${line(content)}`;
  },
  "context:reset": ({ messages }) => `messages: ${(messages as unknown[]).length}`,
  "context:compaction": ({ before_tokens, after_tokens, strategy_level }) =>
    `${tokens(Number(before_tokens))} → ${tokens(Number(after_tokens))} tokens, level ${strategy_level}`,
  "orchestrator:complete": statusOf,
  "task:agent_spawned": ({ agent }) => line(agent),
  "task:agent_completed": (data) => `${data.agent}: ${statusOf(data)}`,
  "cancel:requested": ({ state }) => line(state),
  "user:notification": ({ message }) => line(message),
};

/** Briefs of entries that were drawn: one of a large input is not made again for each frame. */
const known = new WeakMap<Entry, Brief>();

/** Returns what a row of the log says. */
export function briefOf({ entry, text }: LogRow): Brief {
  if (text !== "") return { text: line(text), style: "" }; // deltas, which grow
  let brief = known.get(entry);
  if (!brief) known.set(entry, brief = briefOfEntry(entry));
  return brief;
}

function briefOfEntry(entry: Entry): Brief {
  const { event, data, verdict } = entry;
  const { action, hook_name } = (verdict ?? {}) as Data;
  const by = action === undefined ? "" : ` (${hook_name ?? "hook"}: ${words(action)})`;
  try {
    const said = (WORDS[event] ?? fieldsOf)(data);
    const style = styleOf(entry);
    return { text: `${SIGNS[style]}${said}${by}`.slice(0, MAX_CHARS), style };
  } catch {
    return { text: `${fieldsOf(data)}${by}`, style: "" }; // a hook changed the data to something else
  }
}

const SIGNS: Readonly<Record<Brief["style"], string>> = { failed: "✗ ", waiting: "◷ ", done: "✓ ", "": "" };

function styleOf({ event, data, verdict }: Entry): Brief["style"] {
  switch (event) {
    case "provider:error":
    case "tool:error":
    case "approval:denied":
    case "module:on_session_ready_failed":
      return "failed";
    case "approval:required":
    case "provider:retry":
    case "module:skipped":
      return "waiting";
    case "approval:granted":
      return "done";
    case "tool:pre":
      return (verdict as Data | undefined)?.action === "deny" ? "failed" : "";
    case "tool:post":
      return (data.result as Data | undefined)?.success === false ? "failed" : "done";
    case "run:status":
      return String(data.status).startsWith("awaiting") ? "waiting" : "";
    case "run:end": {
      const { status } = data.run as Data;
      return status === "completed" ? "done" : status === "failed" || status === "denied" ? "failed" : "";
    }
    default:
      return "";
  }
}

/** Returns content in one line of its first characters. */
function line(content: unknown): string {
  const text = typeof content === "object" && content !== null && !Array.isArray(content)
    ? JSON.stringify(content)
    : textOf(content);
  return text.slice(0, MAX_CHARS).replace(/\s+/g, " ");
}

function words(name: unknown): string {
  return textOf(name).replaceAll("_", " ");
}

function statusOf({ status, stop_reason }: Data): string {
  const reason = stop_reason && ![status, "end_turn", "error"].includes(stop_reason)
    ? `, ${stop_reason}`
    : "";
  return `${words(status)}${reason}`;
}

function usageOf(usage: Data | undefined): string {
  if (!usage) return "";
  const { input_tokens, output_tokens, cost_usd } = usage;
  const cost = cost_usd ? `, ${dollars(String(cost_usd))}` : "";
  return `${tokens(Number(input_tokens))} tokens in, ${tokens(Number(output_tokens))} out${cost}`;
}

function blockOf({ type, name, input, text, thinking }: Data): string {
  return type === "tool_call" ? `${name} ${line(input)}` : line(text ?? thinking ?? type);
}

/** Returns the first plain fields of data. */
function fieldsOf(data: Data): string {
  const fields = Object.entries(data).filter(([, value]) => value !== null && typeof value !== "object");
  return fields.slice(0, 3).map(([name, value]) => `${words(name)} ${line(value)}`).join(", ");
}
