/** Writes an imported plan as YAML, with a comment above each part that says where it came from. */
import { planText } from "../plan/plan_text.ts";
import { parsePlanText } from "../plan/parse/parse.ts";
import { canonicalJson, isObject, type JsonObject } from "../sdk/json.ts";
import { escapeAndTruncate } from "../text/escape.ts";
import type { PlanPart } from "./plan_builder.ts";

/** Most bytes of a comment's line. */
const MAX_COMMENT_BYTES = 1_000;

/** Resolves to a plan as YAML with comments; without them where YAML would not read back as the same plan. */
export async function commentedPlan(plan: JsonObject, parts: readonly PlanPart[]): Promise<string> {
  const { dump } = await import("js-yaml");
  const yaml = (value: unknown) => dump(value, { lineWidth: -1, noRefs: true });
  const comments = new Map(parts.map(({ path, from }) => [JSON.stringify(path), from]));
  const comment = (path: readonly (string | number)[], indent: string) => {
    const from = comments.get(JSON.stringify(path));
    return from === undefined ? "" : `${indent}# from ${escapeAndTruncate(from, MAX_COMMENT_BYTES)}\n`;
  };
  const text = Object.entries(plan).map(([key, value]) => {
    const head = comment([key], "");
    const items = Array.isArray(value)
      ? value.map((item, index) => comment([key, index], "  ") + indented(yaml([item])))
      : isObject(value)
      ? Object.entries(value).map(([name, item]) =>
        comment([key, name], "  ") + indented(yaml({ [name]: item }))
      )
      : [];
    return items.length === 0 ? head + yaml({ [key]: value }) : `${head}${key}:\n${items.join("")}`;
  }).join("");
  const same = await parsePlanText(text, { limits: READ_BACK }).then(
    ({ data }) => canonicalJson(data) === canonicalJson(plan),
    () => false,
  );
  return same ? text : await planText(plan);
}

/** The text is ours: its plan is checked against the limits of plans when it is used. */
const READ_BACK = { max_bytes: 64_000_000, max_nodes: 1_000_000, max_depth: 32, max_aliases: 0 };

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
