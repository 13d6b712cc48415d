/** All types of the SDK, for code that must not load a schema library. Types only. */
export type * from "./json.ts";
export type * from "./content_blocks.ts";
export type { ResultBlock } from "./result_content.ts";
export type * from "./tools.ts";
export type * from "./messages.ts";
export type * from "./providers.ts";
export type * from "./money.ts";
export type * from "./hook_result.ts";
export type * from "./hooks.ts";
export type * from "./contracts.ts";
export type * from "./plan.ts";
export type * from "./session_status.ts";
export type * from "./spawn.ts";
export type * from "./retry.ts";
export type { CancellationState, CancellationToken } from "./cancellation.ts";
export type { ErrorCode, ErrorDetail } from "./errors.ts";
export type { ContextOverflow } from "./context_overflow.ts";
export type { LLMErrorOptions, LLMErrorType } from "./llm_errors.ts";
