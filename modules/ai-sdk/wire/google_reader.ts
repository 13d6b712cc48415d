/** Reads answers of the Gemini API. */
import { isObject, type JsonObject } from "preamp/base";
import { type EventReader, objectsIn, readCounts, statesError, textOrNone } from "./event_reader.ts";

export class GoogleReader implements EventReader {
  ended = false;

  read(event: JsonObject): readonly JsonObject[] {
    if (statesError(event)) return this.ended ? [] : [event];
    const read = this.whole(event);
    this.ended ||= objectsIn(read.candidates).some(({ finishReason }) => finishReason !== undefined);
    return ["candidates", "usageMetadata", "promptFeedback"].some((key) => read[key] !== undefined)
      ? [read]
      : [];
  }

  whole(answer: JsonObject): JsonObject {
    if (statesError(answer)) return answer;
    const { candidates, usageMetadata, promptFeedback, responseId, modelVersion } = answer;
    const usage = readCounts(usageMetadata);
    return {
      ...(textOrNone(responseId) === undefined ? {} : { responseId }),
      ...(textOrNone(modelVersion) === undefined ? {} : { modelVersion }),
      ...(Array.isArray(candidates) ? { candidates: objectsIn(candidates).map(candidateIn) } : {}),
      ...(isObject(promptFeedback)
        ? { promptFeedback: { blockReason: textOrNone(promptFeedback.blockReason) } }
        : {}),
      ...(usage ? { usageMetadata: usage } : {}),
    };
  }
}

function candidateIn(candidate: JsonObject): JsonObject {
  const { content, finishReason, finishMessage, safetyRatings: _, ...fields } = candidate;
  const parts = objectsIn(isObject(content) ? content.parts : undefined);
  return {
    ...fields,
    content: {
      parts: parts.filter(({ text }) => typeof text === "string" || text === undefined || text === null),
    },
    ...(textOrNone(finishReason) === undefined ? {} : { finishReason }),
    ...(textOrNone(finishMessage) === undefined ? {} : { finishMessage }),
  };
}
