/**
 * Building blocks of providers: {@link mountProvider} makes a provider from a vendor's {@link Backend}, with
 * settings, retries, timeouts, limits, cost and events; and the normalised {@link Conversation} that backends
 * convert to their wire format.
 *
 * @module
 */
export {
  type AnswerUsage,
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  Degradations,
  type ListedModel,
  type WireRequest,
} from "./provider/backend.ts";
export type {
  AssistantPart,
  Conversation,
  MediaPart,
  NativePart,
  Repair,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from "./provider/conversation.ts";
export type {
  Credential,
  KnownModel,
  ProviderDefaults,
  ProviderDefinition,
  ProviderSettings,
} from "./provider/definition.ts";
export { mountProvider } from "./provider/mount_provider.ts";
export { providerConfigSchema } from "./provider/settings.ts";
export { type ConversationResult, toConversation } from "./provider/to_conversation.ts";
