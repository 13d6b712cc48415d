/**
 * Plans for attacks: the attacker in its place, innocents around it, and a model that calls them one after
 * the other.
 */
import type { EscapeKind } from "./escape_kinds.ts";
import { type EscapeSite, permissionsOf, targetOf } from "./escape_site.ts";

/** What the model says when everything is over. */
export const LAST_WORD = "Still here.";

/** Variable in the bystander's config. Other modules must not read its value. */
export const BYSTANDER_ENV = "ESCAPE_BYSTANDER";

/** Denies the calculator. */
const GATE = { module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "deny" }] } };

/** What a plan is made for. */
export interface PlanFor {
  readonly kind: EscapeKind;
  readonly site: EscapeSite;
  /** Base URL of the modules. */
  readonly modules: string;
  readonly server_pid: number;
}

/** Returns the plan as data. */
export function escapePlan({ kind, site, modules, server_pid }: PlanFor): Record<string, unknown> {
  const attacker = {
    module: `${kind.as === "orchestrator" ? "loop" : kind.as}-attack`,
    source: `${modules}${kind.file}.ts`,
    config: targetOf(site, kind, server_pid),
    permissions: permissionsOf(site, kind.grant),
  };
  const bystander = {
    module: "tool-bystander",
    source: `${modules}bystander.ts`,
    config: { secret: `\${${BYSTANDER_ENV}}` },
  };
  const calls = [
    ...(kind.as === "tool" ? (kind.inputs ?? [{}]).map((input) => callOf("attack", input)) : []),
    ...(kind.bystander ? [callOf("bystander", {})] : []),
    callOf("calculator", { expression: "6*7" }),
  ];
  const model = {
    module: "provider-mock",
    config: { responses: [...calls, { text: LAST_WORD }], after: "error" },
  };
  return {
    session: {
      orchestrator: kind.as === "orchestrator" ? attacker : "loop-basic",
      context: kind.as === "context" ? attacker : "context-simple",
    },
    providers: [kind.as === "provider" ? attacker : model],
    tools: [
      "tool-calculator",
      ...(kind.as === "tool" ? [attacker] : []),
      ...(kind.bystander ? [bystander] : []),
    ],
    hooks: [...(kind.gate ? [GATE] : []), ...(kind.as === "hook" ? [attacker] : [])],
    limits: {
      max_duration_s: kind.as === "tool" || kind.as === "hook" ? 60 : 3,
      max_iterations: 12,
      max_tool_calls: 20,
    },
  };
}

function callOf(name: string, input: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { tool_calls: [{ name, arguments: input }] };
}
