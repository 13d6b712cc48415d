/**
 * The data models of the requirements as zod schemas, for edges that must refuse what does not fit. The factories of the same
 * models (`ToolResult(…)`, `Message(…)`) need no zod; nothing outside the edges should load this file.
 */
export * from "./schemas/tools.ts";
export * from "./schemas/messages.ts";
export * from "./schemas/modules.ts";
export * from "./schemas/hooks.ts";
export * from "./schemas/session.ts";
export * from "./schemas/events.ts";
