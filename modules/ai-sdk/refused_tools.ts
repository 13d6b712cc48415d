/**
 * Tools whose definition a server refuses: the schema is reduced when the request is sent again, and the tool
 * is left out when the server refuses that, too, so that one tool does not make every request fail.
 */
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import type { CallSettings, Degradations } from "preamp/provider";
import type { StatedError } from "./errors.ts";
import type { Names } from "./names.ts";
import { simpleSchema } from "./simple_schema.ts";
import { objectsIn } from "./wire/event_reader.ts";

/** Words about the definition of a tool. */
const OF_TOOL = /schema|parameter|propert|declaration|description|\bname\b|\btools?\b[.[]\s*\d/i;
/** Words about a call that a model made, or about a format of answers: they name a tool, too. */
const NOT_OF_TOOL = /tool[_ ]use[_ ]failed|tool[_ ]call|failed_generation|response_format|text\.format/i;
/** Words of schemas, which a message has in quotes, too. */
const SCHEMA_WORDS: ReadonlySet<string> = new Set(
  "properties items type enum object string array number name description parameters required".split(" "),
);
/** Maximum characters of a description that each API takes. */
const MAX_DESCRIPTION = 1000;
/** Maximum characters of the server's words in a warning. */
const MAX_REASON_CHARS = 300;

export const REFUSED = "the server refused it for this model";

/** The tools that servers refused in one session. */
export class RefusedTools {
  /** Names of the tools with a reduced schema, and of those that are left out, by model. */
  readonly #by_model = new Map<string, { readonly reduced: Set<string>; readonly left_out: Set<string> }>();
  #warnings: string[] = [];

  /** Returns what a person should know of the refusals since the last call. */
  takeWarnings(): string[] {
    const warnings = this.#warnings;
    this.#warnings = [];
    return warnings;
  }

  /** Returns a call with the tools that the server takes. */
  without(call: CallSettings, degradations: Degradations): CallSettings {
    const { tools, tool_choice: choice, model, ...rest } = call;
    const refused = this.#by_model.get(model);
    if (!refused) return call;
    const taken = tools.flatMap((tool): ToolSpec[] => {
      const { name, description = "", parameters } = tool;
      if (refused.left_out.has(name)) {
        degradations.add(`tool ${name}`, REFUSED);
        return [];
      }
      if (!refused.reduced.has(name)) return [tool];
      degradations.add(`schema of tool ${name}`, REFUSED, "a reduced one");
      return [{
        name,
        description: description.slice(0, MAX_DESCRIPTION),
        parameters: simpleSchema(parameters),
      }];
    });
    if (taken.length === tools.length) return { ...call, tools: taken };
    const { name, function: called } = isObject(choice) ? choice : { name: choice };
    const chosen = isObject(called) ? called.name : name;
    const is_gone = taken.length === 0 || refused.left_out.has(String(chosen));
    return {
      ...rest,
      model,
      tools: taken,
      ...(choice === undefined || is_gone ? {} : { tool_choice: choice }),
    };
  }

  /**
   * Notes the tool that a server refuses. Returns whether there is one, which the next request will not have.
   *
   * @param sent Tools of the request, of which another one may have learnt meanwhile.
   */
  learn(
    stated: StatedError,
    { model, tools }: CallSettings,
    { body, names, sent }: { body: JsonObject; names: Names; sent: readonly ToolSpec[] },
  ): boolean {
    const valid = refusedTool(stated, body);
    const name = valid === undefined ? undefined : names.toolOf(valid);
    const [tool, refusedOne] = [tools, sent].map((list) => list.find((one) => one.name === name));
    if (name === undefined || !tool || !refusedOne) return false;
    const refused = this.#by_model.get(model) ?? { reduced: new Set(), left_out: new Set() };
    this.#by_model.set(model, refused);
    const is_left_out = isNative(tool) || refusedOne !== tool;
    const known = is_left_out ? refused.left_out : refused.reduced;
    if (known.has(name)) return true;
    known.add(name);
    const what = is_left_out ? `The tool ${name} is left out` : `The schema of the tool ${name} is reduced`;
    this.#warnings.push(`${what}, because ${model} refuses it: ${stated.text.slice(0, MAX_REASON_CHARS)}`);
    return true;
  }
}

/** Returns whether the vendor defines a tool. */
function isNative({ type }: ToolSpec): boolean {
  return typeof type === "string" && type !== "function" && type !== "custom";
}

/** Returns the name in the request of the tool that a server refuses, by its name or by its place. */
function refusedTool({ code, param, text }: StatedError, body: JsonObject): string | undefined {
  const words = `${code ?? ""} ${param ?? ""} ${text}`;
  if (!OF_TOOL.test(words) || NOT_OF_TOOL.test(words)) return undefined;
  const tools = objectsIn(body.tools);
  const names = tools.flatMap((tool) => [...objectsIn(tool.functionDeclarations), tool]).flatMap(nameOf);
  const quoted = names.filter((name) =>
    !SCHEMA_WORDS.has(name) && new RegExp(`['"\`]${name}['"\`]`).test(words)
  );
  const called = names.filter((name) =>
    new RegExp(`\\b(?:function|tool)s?:? (?:name[d:]* )?['"\`]?${name}(?![\\w-])`, "i").test(words)
  );
  const [named] = called.length > 0 ? called : quoted;
  if (named !== undefined) return named;
  const [, place] = /\btools?\b[.[]\s*(\d+)/i.exec(words) ?? [];
  const [, declared] = /function_?declarations[.[]\s*(\d+)/i.exec(words) ?? [];
  const tool = place === undefined ? undefined : tools[Number(place)];
  const declaration = declared === undefined ? tool : objectsIn(tool?.functionDeclarations)[Number(declared)];
  return declaration && nameOf(declaration)[0];
}

/** Names have letters, digits, `_` and `-` only. */
function nameOf({ name, function: called }: JsonObject): string[] {
  const own = isObject(called) ? called.name : name;
  return typeof own === "string" ? [own.replace(/[^\w-]/g, "")] : [];
}
