/**
 * Types of the vendor's client and of the API, as far as this module uses them. The client's own types would
 * replace Deno's global types by those of Node.
 */
import type { JsonObject, JsonSchema } from "preamp/base";

export declare class GoogleGenAI {
  constructor(options: { apiKey: string; httpOptions: { apiVersion: string; baseUrl?: string } });
  readonly models: {
    generateContent(parameters: GenerateContentParameters): Promise<GenerateContentResponse>;
    generateContentStream(
      parameters: GenerateContentParameters,
    ): Promise<AsyncIterable<GenerateContentResponse>>;
    list(parameters: { config: { pageSize: number } & Transport }): Promise<AsyncIterable<Model>>;
  };
}

/** Options of one request. */
export interface Transport {
  abortSignal?: AbortSignal;
  httpOptions?: { fetch: typeof fetch };
}

export interface GenerateContentParameters {
  model: string;
  contents: Content[];
  config: GenerateContentConfig;
}

export interface GenerateContentConfig extends Transport {
  systemInstruction?: { parts: Part[] };
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  stopSequences?: string[];
  tools?: Tool[];
  toolConfig?: ToolConfig;
  responseMimeType?: string;
  responseJsonSchema?: JsonSchema;
  thinkingConfig?: ThinkingConfig;
  safetySettings?: JsonObject[];
  automaticContinuation?: boolean;
  automaticFunctionCalling?: { disable: boolean };
}

/** One side's turn. */
export interface Content {
  role: "user" | "model";
  parts: Part[];
}

/** A piece of content. The API has more kinds; those are kept as they come. */
export interface Part {
  text?: string;
  /** Whether the text is the model's thoughts. */
  thought?: boolean;
  /** Encrypted thoughts, in base64; sent back unchanged. */
  thoughtSignature?: string;
  functionCall?: { id?: string; name?: string; args?: unknown };
  functionResponse?: { id: string; name: string; response: JsonObject; parts?: Part[] };
  inlineData?: { mimeType: string; data: string };
  fileData?: { fileUri: string; mimeType?: string };
}

/** Functions, and tools that the server runs. */
export interface Tool {
  functionDeclarations?: FunctionDeclaration[];
  [server_tool: string]: unknown;
}

/** A function that the model may call. */
export interface FunctionDeclaration {
  name: string;
  description?: string;
  parametersJsonSchema: JsonSchema;
}

/** Which functions the model may or must call. */
export interface ToolConfig {
  functionCallingConfig?: { mode: string; allowedFunctionNames?: string[] };
  includeServerSideToolInvocations?: boolean;
}

/** How the model thinks: a level, or tokens. */
export interface ThinkingConfig {
  includeThoughts?: boolean;
  thinkingLevel?: string;
  thinkingBudget?: number;
}

/** A response, or a chunk of one. */
export interface GenerateContentResponse {
  candidates?: Candidate[];
  promptFeedback?: { blockReason?: string };
  usageMetadata?: JsonObject;
  modelVersion?: string;
  responseId?: string;
}

export interface Candidate {
  content?: { parts?: Part[] };
  finishReason?: string;
  groundingMetadata?: JsonObject;
}

/** A model as the API lists it. */
export interface Model {
  name?: string;
  displayName?: string;
  inputTokenLimit?: number;
  outputTokenLimit?: number;
  supportedActions?: string[];
}
