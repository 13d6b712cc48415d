/** Converts a conversation to the API's `contents`. */
import { isObject } from "preamp/base";
import type { AssistantPart, Conversation, MediaPart, ToolResultPart, UserPart } from "preamp/provider";
import type { Content, Part } from "./client_types.ts";
import { isBeforeGemini3 } from "./models.ts";

/**
 * The signature that the API documents for calls that the model did not make, such as those of another
 * provider: from Gemini 3 on, the first call of a turn must have one.
 */
const NO_SIGNATURE = "skip_thought_signature_validator";

/** Media types by extension, for URLs. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  pdf: "application/pdf",
  txt: "text/plain",
};

/** Returns the contents of a request to `model`. */
export function toContents(conversation: Conversation, model: string): Content[] {
  const early = isBeforeGemini3(model);
  return conversation.turns.map((turn) =>
    turn.role === "user"
      ? { role: "user", parts: turn.parts.flatMap((part) => toUserParts(part, early)) }
      : { role: "model", parts: signFirstCall(turn.parts.map(toModelPart), early) }
  );
}

function toUserParts(part: UserPart, early: boolean): Part[] {
  if (part.type === "text") return [{ text: part.text }];
  if (part.type !== "tool_result") return [toMediaPart(part)];
  const { functionResponse, media } = toFunctionResponse(part);
  if (media.length === 0) return [{ functionResponse }];
  // before Gemini 3 a function response is JSON only
  if (early) return [{ functionResponse }, ...media];
  return [{ functionResponse: { ...functionResponse, parts: media } }];
}

function toFunctionResponse({ tool_call_id: id, name, content, is_error }: ToolResultPart) {
  const parts = typeof content === "string" ? [] : content;
  const text = typeof content === "string"
    ? content
    : parts.flatMap((part) => part.type === "text" ? part.text : []).join("\n\n");
  const response = { [is_error ? "error" : "output"]: text };
  const media = parts.flatMap((part) => part.type === "text" ? [] : toMediaPart(part));
  return { functionResponse: { id, name, response }, media };
}

function toMediaPart({ media_type, data, url, file_id }: MediaPart): Part {
  if (data !== undefined) return { inlineData: { mimeType: media_type ?? "application/octet-stream", data } };
  const fileUri = url ?? file_id ?? "";
  const mimeType = media_type ?? typeOfUrl(fileUri);
  return { fileData: { fileUri, ...(mimeType === undefined ? {} : { mimeType }) } };
}

function typeOfUrl(url: string): string | undefined {
  const extension = /\.([a-z]{3,4})(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(MEDIA_TYPES, extension) ? MEDIA_TYPES[extension] : undefined;
}

function toModelPart(part: AssistantPart): Part {
  switch (part.type) {
    case "text":
      return { text: part.text, ...signatureOf(part.block?.thought_signature) };
    case "tool_call": {
      const { id, name, input } = part;
      return { functionCall: { id, name, args: input }, ...signatureOf(part.block?.thought_signature) };
    }
    default: {
      const { block } = part;
      if (block.type === "gemini_part" && isObject(block.part)) return block.part as Part; // as the API sent it
      return { text: String(block.thinking ?? ""), thought: true, ...signatureOf(block.signature) };
    }
  }
}

function signatureOf(signature: unknown): { thoughtSignature?: string } {
  return typeof signature === "string" ? { thoughtSignature: signature } : {};
}

function signFirstCall(parts: Part[], early: boolean): Part[] {
  const first = parts.findIndex((part) => part.functionCall);
  if (early || first === -1 || parts[first]!.thoughtSignature !== undefined) return parts;
  return parts.with(first, { ...parts[first]!, thoughtSignature: NO_SIGNATURE });
}
