/**
 * Zod schemas of requests. They validate bodies and queries, and the OpenAPI document is generated from them.
 * Loaded on the first request that needs validation, because loading zod is slow.
 */
import * as z from "zod";
import type { RunLimits } from "../../sdk/contracts.ts";
import { MIN_DURATION_S, MODEL_FORM, readModelName } from "../../plan/check/field_checks.ts";
import { imageFromBase64 } from "../../sdk/images.ts";
import { MAX_IMAGE_CHARS } from "../../sdk/image_types.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";

/** Creates the schema of an object that is validated elsewhere; the value is not copied. */
export function data(description: string) {
  return z.custom<JsonObject>(isObject, { error: "must be an object" }).meta({ type: "object", description });
}

const text = z.string();
const count = z.int().min(0);
const nonBlank = z.string().regex(/\S/, { error: "must not be blank" });

/** A content block of any type. */
export const ContentBlock = z.custom<{ type: string; [key: string]: unknown }>(
  (value) => isObject(value) && typeof value.type === "string",
  { error: "must be an object with a type" },
).meta({ type: "object", required: ["type"], properties: { type: { type: "string" } } });

/** Limits of one run. */
export const Limits = z.strictObject(
  {
    max_iterations: z.int().min(1).exactOptional().meta({ description: "answered provider calls" }),
    max_tool_calls: count.exactOptional(),
    max_total_tokens: z.int().min(1).exactOptional(),
    max_cost_usd: z.string().regex(/^\d{1,15}(\.\d{1,18})?$/, {
      error: 'must be a decimal string such as "0.50"',
    })
      .exactOptional(),
    max_duration_s: z.number().min(MIN_DURATION_S).exactOptional().meta({
      description: "waiting for an approval does not count",
    }),
    on_limit: z.enum(["end", "pause"]).exactOptional().meta({
      description: "pause: the run waits at a limit until a person raises it; default end",
    }),
  } satisfies Record<keyof RunLimits, z.ZodType>,
).meta({ description: "Limits of a run; may only tighten those of the plan and of the policy." });

/**
 * A content block of a prompt. Text blocks must have text; the fields of other types are checked by the
 * provider.
 */
const PromptBlock = ContentBlock.refine((block) => block.type !== "text" || typeof block.text === "string", {
  error: "must have text when its type is text",
});

/** An image in base64 must be one that models take; other forms, such as an address, are the provider's. */
const CheckedBlock = PromptBlock.refine((block) => {
  const source = isObject(block.source) ? block.source : {};
  if (block.type !== "image" || source.type !== "base64") return true;
  return typeof source.data === "string" && source.data.length <= MAX_IMAGE_CHARS &&
    imageFromBase64(source.data, String(source.media_type ?? "")) !== undefined;
}, { error: "must be a PNG, JPEG, GIF or WebP image in base64, of at most 5 MiB, when it is an image" });

const prompt = z.union([nonBlank, z.array(CheckedBlock).min(1)], {
  error: "must be text that is not blank, or a list of content blocks",
});

const plan = z.custom<JsonObject | string>((value) => isObject(value) || typeof value === "string", {
  error: "must be a plan: an object, or YAML or JSON text",
}).meta({
  type: ["object", "string"],
  description: "A mount plan: as data, or as YAML or JSON text. At most 256 KiB.",
});

const planRef = z.string().min(1).meta({ description: "name of a plan of GET /v1/plans" });

const model = z.string().refine((name) => readModelName(name) !== null, { error: `must be ${MODEL_FORM}` })
  .meta({
    description:
      "PROVIDER/MODEL: the model of this run, in place of the plan's; without a plan, the demo plan runs on it",
    examples: ["anthropic/claude-sonnet-5-5"],
  });

const workspace = z.string().min(1).meta({
  description:
    "folder that ${WORKSPACE} in the plan means, an absolute path; for the person who has started the server",
});

/** A plan without the key `plan_ref`, so that `{plan_ref}` with a misspelt field beside it is refused. */
const unnamedPlan = plan.refine((value) => typeof value === "string" || !Object.hasOwn(value, "plan_ref"));

const comparedPlan = z.union([z.strictObject({ plan_ref: planRef }), unnamedPlan], {
  error: "must be a plan (an object, or YAML or JSON text), or {plan_ref}",
});

/** Schemas of request bodies. Unknown fields are errors, so that a misspelt limit is not ignored. */
export const BODIES = {
  RunRequest: z.strictObject({
    prompt,
    plan: plan.exactOptional(),
    plan_ref: planRef.exactOptional(),
    model: model.exactOptional(),
    mode: z.string().min(1).exactOptional().meta({
      description: "mode of the plan, from this run of its session on; none: no mode",
    }),
    workspace: workspace.exactOptional(),
    lock: data("contents of plan.lock.json").exactOptional(),
    session_id: z.string().min(1).exactOptional().meta({ description: "continues this conversation" }),
    limits: Limits.exactOptional(),
    background: z.boolean().exactOptional().meta({ description: "answer 202 at once; default false" }),
    on_disconnect: z.enum(["continue", "cancel"]).exactOptional().meta({ description: "default continue" }),
    if_busy: z.enum(["reject", "queue", "cancel"]).exactOptional().meta({ description: "default reject" }),
    metadata: data("echoed on the run").exactOptional(),
  }).refine((value) => value.plan === undefined || value.plan_ref === undefined, {
    path: ["plan_ref"],
    error: "must not be combined with plan",
  }),

  CancelRequest: z.strictObject({
    mode: z.enum(["graceful", "immediate"]).exactOptional().meta({ description: "default graceful" }),
  }),

  ReplayRequest: z.strictObject({
    from_event: z.int().min(1).exactOptional().meta({
      description: "execute the run again from this entry, with live calls, in a new session",
    }),
    plan: plan.exactOptional().meta({ description: "with from_event: replaces the plan of the run" }),
  }).refine((value) => value.plan === undefined || value.from_event !== undefined, {
    path: ["plan"],
    error: "must be combined with from_event",
  }),

  ForkRequest: z.strictObject({
    turn: z.int().min(1).exactOptional().meta({
      description: "last turn of the history to keep, from 1; default all",
    }),
    before_run: z.string().min(1).exactOptional().meta({
      description: "id of a run of the session: keep what was before it; instead of turn",
    }),
  }).refine(({ turn, before_run }) => turn === undefined || before_run === undefined, {
    path: ["before_run"],
    error: "must not be combined with turn",
  }),

  SteerRequest: z.strictObject({ text: nonBlank }),

  ApprovalAnswer: z.strictObject({
    decision: z.string().min(1).meta({ description: "allow, deny, or one of the approval's options" }),
    reason: text.exactOptional(),
    args_hash: text.exactOptional().meta({
      description: "hash of the approved arguments; the decision is refused if it differs",
    }),
  }),

  LimitsRequest: Limits.pick({
    max_iterations: true,
    max_tool_calls: true,
    max_total_tokens: true,
    max_cost_usd: true,
  }).refine((value) => Object.keys(value).length > 0, { error: "must have a limit to raise" })
    .meta({ description: "New values of limits, above those of the run and within the server's." }),

  SavePlanRequest: z.strictObject({ plan }),

  PlanRequest: z.strictObject({
    plan: plan.exactOptional(),
    plan_ref: planRef.exactOptional(),
    model: model.exactOptional(),
    workspace: workspace.exactOptional(),
    lock: data("contents of plan.lock.json").exactOptional(),
  }).refine((value) => (value.plan === undefined) !== (value.plan_ref === undefined), {
    path: ["plan"],
    error: "must be given if plan_ref is not, and only then",
  }),

  PlanDiffRequest: z.strictObject({ from: comparedPlan, to: comparedPlan }),
};

/** Status of a run. */
export const RunStatus = z.enum([
  "queued",
  "running",
  "awaiting_approval",
  "awaiting_limit",
  "completed",
  "incomplete",
  "denied",
  "cancelled",
  "failed",
]).meta({ description: "the last five are final" });

const limit = z.int().min(1).max(1000).exactOptional().meta({
  description:
    "default 100, at most 1000, unless configured otherwise by limits.page_limit and limits.max_page_limit; " +
    "a page of large items ends earlier, at 8 MiB",
});
const cursor = z.string().min(1).exactOptional().meta({ description: "next_cursor of the previous page" });
/** A number of at most 15 digits, as `wholeNumber` of `body/validation.ts` reads it. */
const seq = z.int().min(0).max(999_999_999_999_999);

/** Schemas of query parameters. Whole numbers have been converted before validation. */
export const QUERIES = {
  CreateRunQuery: z.strictObject({
    prompt: z.string().exactOptional().meta({ description: "the prompt, if the body is a plan" }),
    model: model.exactOptional(),
  }),
  ListRunsQuery: z.strictObject({
    session_id: z.string().min(1).exactOptional(),
    status: RunStatus.exactOptional(),
    limit,
    cursor,
  }),
  EventsQuery: z.strictObject({
    after: seq.exactOptional().meta({
      description: "only entries with a larger seq; Last-Event-ID has the same effect",
    }),
    limit: limit.meta({
      description:
        "of a JSON list; default and maximum 1000, unless configured otherwise by limits.max_page_limit; " +
        "a page of large entries ends earlier, at 8 MiB",
    }),
    cursor: seq.exactOptional().meta({ description: "of a JSON list: next_cursor of the previous page" }),
  }),
  RequestsQuery: z.strictObject({
    seq: seq.exactOptional().meta({ description: "only the calls of this provider:request" }),
    limit: limit.meta({ description: "without it, all calls, up to about 8 MiB" }),
    cursor: seq.exactOptional().meta({ description: "next_cursor of the previous page" }),
  }),
  PageQuery: z.strictObject({ limit, cursor }),
  MessagesQuery: z.strictObject({
    limit: limit.meta({ description: "without it, all messages, up to about 8 MiB" }),
    cursor: seq.exactOptional().meta({ description: "next_cursor of the previous page" }),
  }),
};
