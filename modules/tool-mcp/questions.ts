/** What a server asks a person during a call (elicitation): a form that can be allowed or denied as it is. */
import { type Coordinator, isObject, type JsonObject } from "preamp/base";

/** Resolves to whether a person allows that a server gets the content. */
export type Ask = (server: string, message: string, content: JsonObject) => Promise<boolean>;

/** Longest message of a server in a question. */
const MAX_MESSAGE = 2_000;

/**
 * Returns the content of an accepted form: its defaults, and true for a required yes or no. Null: a field
 * needs words of a person, which an approval does not have.
 */
export function acceptedContent({ properties, required }: JsonObject): JsonObject | null {
  const content: JsonObject = {};
  const needed: unknown[] = Array.isArray(required) ? required : [];
  for (const [name, field] of Object.entries(isObject(properties) ? properties : {})) {
    if (!isObject(field)) return null;
    if (field.default !== undefined) content[name] = field.default;
    else if (field.type === "boolean" && needed.includes(name)) content[name] = true;
    else if (needed.includes(name)) return null;
  }
  return content;
}

/** Returns a function that asks as an approval of the run; without an answer it denies. */
export function askWith(coordinator: Coordinator): Ask {
  return async (server, message, content) => {
    const event = "tool-mcp:elicitation";
    const emission = await coordinator.hooks.emit(event, { server, message, content });
    if (emission.action === "deny") return false;
    const sent = Object.keys(content).length === 0 ? "" : ` It gets ${JSON.stringify(content)}.`;
    const question = {
      ...emission,
      action: "ask_user" as const,
      approval: {
        prompt: `Server "${server}" asks: ${message.slice(0, MAX_MESSAGE)}${sent}`,
        options: ["Allow", "Deny"],
        timeout: null,
        default: "deny" as const,
        hook_name: "tool-mcp",
      },
    };
    return (await coordinator.processHookResult(question, event, "tool-mcp")).action !== "deny";
  };
}
