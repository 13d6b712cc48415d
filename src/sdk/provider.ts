/**
 * Building blocks of providers: {@link mountProvider} makes a provider from a vendor's {@link Backend}, with
 * settings, retries, timeouts, limits, cost and events; and the normalised {@link Conversation} that backends
 * convert to their wire format.
 *
 * @module
 */
export { GrowingText } from "./growing_text.ts";
export { AnswerBlocks, type AnswerBlocksOptions } from "./provider/answer_blocks.ts";
export { readEvents, type StreamedEvent } from "./provider/event_stream.ts";
export {
  type AnswerUsage,
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  connectionError,
  Degradations,
  type ListedModel,
  type WireRequest,
} from "./provider/backend.ts";
export {
  type AssistantPart,
  type CachedPart,
  type Conversation,
  type MediaPart,
  type NativePart,
  type Repair,
  textOfFile,
  type TextPart,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
  type UserPart,
} from "./provider/conversation.ts";
export { objectSchema } from "./provider/object_schema.ts";
export { mountProvider } from "./provider/provider.ts";
export {
  type Credential,
  type KnownModel,
  providerConfigSchema,
  type ProviderDefaults,
  type ProviderDefinition,
  type ProviderSettings,
} from "./provider/settings.ts";
export { type ConversationResult, toConversation } from "./provider/to_conversation.ts";
