/**
 * Building blocks of providers: {@link mountProvider} makes a provider from a vendor's {@link Backend}, with
 * settings, retries, timeouts, limits, cost and events; and the normalised {@link Conversation} that backends
 * convert to their wire format.
 *
 * @module
 */
export type {
  AnswerUsage,
  Backend,
  BackendAnswer,
  CallIo,
  CallSettings,
  ListedModel,
  WireRequest,
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
export { Degradations } from "./provider/degradations.ts";
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
