/**
 * Zod schemas of responses: the OpenAPI document is generated from them, and tests validate responses with
 * them.
 */
import * as z from "zod";
import { type ErrorCode, ERRORS } from "../../sdk/errors.ts";
import { LIMIT_QUESTION, RUN_LIMITS } from "../../sdk/schemas/event_data.ts";
import { ContentBlock, data, Limits, RunStatus } from "./requests.ts";

const text = z.string();
const count = z.int().min(0);
const time = z.string().meta({ format: "date-time", description: "UTC, RFC 3339" });

const Approval = z.object({
  id: text,
  object: z.literal("approval"),
  run_id: text,
  session_id: text,
  tool_name: text.nullable(),
  tool_call_id: text.nullable(),
  tool_input: z.record(z.string(), z.unknown()).nullable(),
  preview: text.optional().meta({ description: "what the call would do, such as a diff" }),
  args_hash: text.meta({ description: "SHA-256 of the canonical JSON of the tool's input" }),
  action: text,
  prompt: text,
  options: z.array(z.unknown()),
  default: z.enum(["allow", "deny"]),
  risk_level: text,
  hook_name: text.nullable(),
  limit: LIMIT_QUESTION.optional().meta({ description: "set when the question is to raise a limit" }),
  pattern: text.optional().meta({ description: "calls that a remembered answer applies to" }),
  status: z.enum(["pending", "granted", "denied", "expired"]),
  decision: text.optional(),
  reason: text.nullable().optional(),
  decided_by: text.nullable().optional(),
  created_at: time,
  expires_at: time,
  decided_at: time.optional(),
});

const Warning = z.object({ code: text, path: text.optional(), message: text });

const Run = z.object({
  id: text,
  object: z.literal("run"),
  session_id: text,
  title: text.optional().meta({ description: "the first 200 characters of the prompt, on one line" }),
  status: RunStatus,
  stop_reason: text.nullable(),
  output_text: text,
  output: z.array(ContentBlock),
  turn_count: count,
  tool_call_count: count,
  usage: z.object({
    input_tokens: count,
    output_tokens: count,
    total_tokens: count,
    cache_read_tokens: count,
    cache_write_tokens: count,
    cost_usd: text.nullable().meta({ description: "decimal string; null when no price was known" }),
  }),
  limits: z.object(RUN_LIMITS),
  plan_hash: text,
  lock_hash: text.nullable(),
  warnings: z.array(Warning),
  approvals: z.array(Approval).meta({
    description: "pending approvals, and those that no one could be asked about",
  }),
  error: z.object({ code: text, message: text }).nullable(),
  metadata: z.record(z.string(), z.unknown()),
  forked_from: z.object({ run_id: text, seq: count }).nullable().optional().meta({
    description: "the entry that the run continues from; null: it has a prompt of its own",
  }),
  context: z.object({ tokens: count, budget: z.int(), level: count, compactions: count }),
  isolation: z.record(z.string(), z.string()).meta({ description: "module id → tier" }),
  created_at: time,
  ended_at: time.nullable(),
  events_url: text,
});

const Event = z.object({
  seq: z.int().min(1).meta({ description: "1, 2, 3, … without gaps" }),
  event: text,
  ts: time,
  run_id: text,
  session_id: text,
  parent_id: text.optional(),
  turn_id: text.optional(),
  iteration: z.int().min(1).optional(),
  data: z.record(z.string(), z.unknown()),
  verdict: z.object({
    action: text,
    hook_name: text.nullable(),
    reason: text.optional(),
    modified: z.boolean().optional(),
    injections: z.array(z.record(z.string(), z.unknown())).optional(),
  }).optional(),
});

const ModelRequest = z.object({
  seq: z.int().min(1).meta({
    description: "of the call's provider:request; a shortened request has the same",
  }),
  session_id: text,
  provider: text,
  iteration: z.int().min(1),
  messages: z.array(z.record(z.string(), z.unknown())),
  tools: z.array(z.record(z.string(), z.unknown())),
  options: z.record(z.string(), z.unknown()).meta({ description: "the other fields of the request" }),
  tokens: z.object({ messages: z.array(count), tools: count, total: count }).meta({
    description: "estimated: of each message, of all tools, of both",
  }),
  usage: z.record(z.string(), z.unknown()).nullable().meta({
    description: "as the answer reported it; null without an answer",
  }),
});

const Session = z.object({
  id: text,
  object: z.literal("session"),
  title: text.optional().meta({ description: "of its first run; the name of a sub-agent" }),
  parent_id: text.nullable(),
  plan_hash: text.nullable(),
  run_count: count,
  created_at: time,
  last_activity: time,
  status: z.object({
    session_id: text,
    started_at: time,
    ended_at: time.optional(),
    status: z.enum(["running", "completed", "failed", "cancelled"]).meta({ description: "of its last run" }),
    total_messages: count,
    tool_invocations: count,
    tool_successes: count,
    tool_failures: count,
    total_input_tokens: count,
    total_output_tokens: count,
    cost_usd: text.optional().meta({ description: "decimal string; absent when no price was known" }),
    last_activity: time.optional(),
    last_error: z.object({ code: text, message: text }).optional(),
  }).meta({ description: "state of the session, with counters over all its runs" }),
  metadata: z.record(z.string(), z.unknown()),
});

const Detail = z.object({
  path: text,
  file: text.optional(),
  line: z.int().min(1).optional(),
  column: z.int().min(1).optional(),
  message: text,
  hint: text.optional(),
}).meta({ description: "one finding about a document" });

// Object.keys forgets the type of a table's keys.
const Code = z.enum(Object.keys(ERRORS) as ErrorCode[]).meta({
  description: "stable; clients must accept unknown codes",
});

const Module = z.object({
  id: text,
  name: text,
  type: text,
  mount_point: text.meta({ description: "mount point, such as tools" }),
  version: text,
  description: text,
  permissions: z.record(z.string(), z.unknown()).nullable(),
  config_schema: z.unknown(),
});

const NamedPlan = z.object({ name: text, plan_hash: text, description: text.optional() });

const planFields = {
  plan: data("the plan with secrets redacted and ${VAR} as written"),
  text: text.meta({ description: "the plan as YAML" }),
};

const permissionBlock = z.record(z.string(), z.union([z.boolean(), z.array(text)])).meta({
  description: "Deno's names: net, read, write, env, run, sys, ffi, import",
});

const RedFlag = z.object({ code: text, message: text, path: text }).meta({
  description:
    "something to review before the plan runs; codes are stable, clients must accept unknown codes",
});

const TierAnswer = z.union([z.literal(true), z.string()]);

const ExplainedMode = z.object({
  name: text,
  description: text.nullable(),
  active: z.boolean().meta({ description: "whether it is the mode of the plan" }),
  decides: text.meta({ description: "what it does with calls, as a sentence" }),
});

const Explanation = z.object({
  plan_hash: text,
  lock_hash: text.nullable(),
  texts: z.array(z.object({ label: text, url: text, sha256: text, bytes: count })).meta({
    description: "files whose texts steer the model; part of plan_hash, and pinned by a lock",
  }),
  instructions: z.array(z.object({ path: text, sha256: text, bytes: count })).nullable().meta({
    description: "files of the project that would be read now; null without `instructions: project`",
  }),
  modes: z.array(ExplainedMode),
  summary: z.object({
    text: text.meta({ description: "the rest as a sentence" }),
    prompts_to: z.array(text).meta({
      description: "hosts that prompts go to, and `module ID` for a provider from a URL",
    }),
    may: permissionBlock.meta({ description: "permissions of all modules together" }),
    inside: z.array(text).meta({
      description: "modules by URL or path that run inside the program, with all that it may do",
    }),
    asks: z.array(text).nullable().meta({
      description: "kinds of calls that hooks-approval asks about; null: the plan has no hooks-approval",
    }),
  }).meta({ description: "what all modules may touch together" }),
  modules: z.array(z.object({
    module: text,
    type: text,
    version: text.nullable().meta({
      description: "null: cannot be read without executing the module",
    }),
    description: text.nullable(),
    path: text.meta({ description: "place in the plan, such as tools[0]" }),
    url: text.nullable().meta({ description: "null: a built-in module" }),
    integrity: text.nullable(),
    isolation: z.enum(["inline", "process"]),
    prompts_to: text.nullable().meta({ description: "where a provider sends prompts" }),
    servers: z.array(z.object({
      name: text,
      transport: text.meta({ description: "http, command, npm; listed: as the operator's settings say" }),
      target: text.meta({ description: "host, command or package" }),
      tools: z.array(text).nullable().meta({ description: "tools in the lock; null: not locked" }),
    })).meta({ description: "MCP servers that its config names" }),
    files: z.array(z.object({ url: text, sha256: text, bytes: count })),
    permissions: z.object({
      wanted: permissionBlock.nullable().meta({
        description: "permissions the module wants; null: cannot be read without executing the module",
      }),
      asked: permissionBlock,
      granted: permissionBlock,
      refused: permissionBlock,
    }),
    red_flags: z.array(RedFlag),
  })),
  env: z.array(text).meta({ description: "names of the variables that configs reference" }),
  limits: Run.shape.limits,
  deno_flags: z.array(text),
  red_flags: z.array(RedFlag),
  warnings: z.array(Warning),
}).meta({ description: "what a plan may access; no module was executed" });

const LockedModule = z.object({ url: text, integrity: text });
const LockedTool = z.object({ sha256: text, parameters: z.array(text) });
const LockedFile = z.object({ sha256: text, bytes: count });

const Lock = z.object({
  version: z.literal(1),
  modules: z.record(z.string(), LockedModule).meta({ description: "by source, as written in the plan" }),
  files: z.record(z.string(), LockedFile).meta({ description: "by URL" }),
  servers: z.record(z.string(), z.record(z.string(), LockedTool)).meta({
    description: "tools of MCP servers, by server and name",
  }),
}).meta({ description: "plan.lock.json" });

const PlanChange = z.object({ path: text, from: z.unknown(), to: z.unknown(), message: text });

const PlanDiff = z.object({
  widens: z.array(PlanChange),
  narrows: z.array(PlanChange),
  other: z.array(PlanChange),
}).meta({ description: "a change that may widen the plan is listed in widens" });

/** Schemas of response bodies. Clients must ignore unknown fields: /v1 only adds fields. */
export const ANSWERS = {
  Run,
  Approval,
  Session,
  Event,
  Module,
  RunList: listOf(Run),
  EventList: listOf(Event),
  ModelRequestList: listOf(ModelRequest),
  ApprovalList: listOf(Approval),
  SessionList: listOf(Session),
  MessageList: listOf(z.record(z.string(), z.unknown())),
  PlanList: listOf(NamedPlan),
  PlanDocument: NamedPlan.extend(planFields),
  Caller: z.object({
    name: text,
    namespace: text.meta({ description: "keys with the same one see the same runs" }),
    owner: z.boolean().meta({
      description: "whether it may choose model and workspace of the server's plans, and save plans",
    }),
  }),
  RunPlan: z.object({ plan_hash: text, origin: z.enum(["operator", "caller"]), ...planFields }),
  UsableModelList: listOf(z.object({
    model: text.meta({ description: "what model of a run takes: PROVIDER/MODEL" }),
    provider: text,
    display_name: text,
    context_window: count.meta({ description: "tokens" }),
    max_output_tokens: count,
    pricing: z.object({ input_per_million: z.number(), output_per_million: z.number(), currency: text })
      .optional().meta({ description: "absent when it is not known" }),
  })).extend({
    errors: z.array(z.object({ provider: text, message: text })).meta({
      description: "providers whose models could not be listed",
    }),
  }),
  ModuleList: listOf(Module),
  PlanCheck: z.object({
    ok: z.boolean(),
    code: text.optional().meta({ description: "error.code of a run of the plan" }),
    errors: z.array(Detail),
    warnings: z.array(Detail.extend({ code: text })),
    plan_hash: text.optional(),
    sources: z.array(z.object({ path: text, module: text, source: text, url: text })).optional(),
    modes: z.array(ExplainedMode).optional(),
  }).meta({ description: "result of a check, for valid and invalid plans" }),
  ReplayReport: z.object({
    equal: z.boolean(),
    first_difference: z.object({
      message: text.meta({ description: "the difference in words" }),
      what: z.enum(["call", "model_call", "status", "output_text"]),
      session_id: text,
      turn: z.int().min(1).meta({ description: "number of the turn in this run and session" }),
      call: z.int().min(1).nullable().meta({ description: "number of the call in the turn" }),
      recorded: z.unknown().meta({ description: "a call: {name, input}, or null without one" }),
      replayed: z.unknown(),
    }).optional(),
  }),
  UndoReport: z.object({
    object: z.literal("undo"),
    run_id: text,
    undone: z.array(z.object({ path: text, action: z.enum(["restored", "deleted"]) })).meta({
      description: "files that are as before the run; those that it had created are deleted",
    }),
    not_undone: z.array(z.object({ path: text, reason: text })).meta({
      description: "files that stay as they are, and why",
    }),
  }),
  JsonSchema: data("JSON Schema 2020-12"),
  Explanation,
  Lock,
  PlanDiff,
  Health: z.object({ status: z.literal("ok") }),
  Readiness: z.object({
    ok: z.boolean(),
    reasons: z.array(z.string()),
    isolation: z.object({ process: TierAnswer, limits: z.string().optional() }).meta({
      description: "tiers available for modules loaded by URL: true, or the reason why not; " +
        "limits: what is missing in the limits of child processes on this host",
    }),
    bundler: TierAnswer.meta({
      description: "if modules loaded by URL are bundled in a separate process: true, or the reason why not",
    }),
    home: z.string().optional().meta({
      description: "what is missing because $PREAMP_HOME cannot be read; absent if nothing is",
    }),
  }),
  System: z.object({
    ok: z.boolean(),
    warnings: z.array(z.string()),
    version: z.object({ preamp: text, deno: text, v8: text, target: text, compiled: z.boolean() }),
    store: z.object({ kind: text, ok: z.boolean(), reason: z.string().optional() }),
    isolation: z.object({ process: TierAnswer, limits: z.string().optional() }),
    bundler: TierAnswer,
    permissions: z.record(z.string(), z.enum(["granted", "partial", "denied"])),
    variables: z.array(z.object({ name: text, set: z.boolean() })),
    clock: text,
    memory: z.object({
      rss_bytes: z.int(),
      total_bytes: z.int().nullable(),
      available_bytes: z.int().nullable(),
    }),
  }),
  Problem: z.object({
    type: text,
    title: text,
    status: z.int(),
    detail: text,
    error: z.object({ code: Code, message: text, details: z.array(Detail).optional(), request_id: text }),
    run: Run.optional().meta({ description: "with log_expired: the run of the log" }),
  }).meta({ description: "RFC 9457" }),
};

function listOf(item: z.ZodType) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() });
}

/** Other schemas that the OpenAPI document references by name. */
export const SHARED = {
  ErrorCode: Code,
  ContentBlock,
  Limits,
  RunStatus,
  Warning,
  Detail,
  NamedPlan,
  RedFlag,
  PlanChange,
  Permissions: permissionBlock,
};
