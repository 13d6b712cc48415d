/**
 * What every schema library speaks: Standard Schema (standardschema.dev, version 1) with its JSON Schema extension. zod,
 * Valibot, ArkType and others fit, so the SDK names none of them to type a tool's input.
 */
import type { JsonObject } from "./json.ts";

/** One finding about a value. */
export interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where, from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What validating came to: a value, or findings. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** A schema of any library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The library's answer to Standard Schema. */
  readonly "~standard": {
    /** Version of the protocol. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Types only; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Validates and converts. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** The schema as JSON Schema, when the library can tell. */
    readonly jsonSchema?: {
      /** The schema of what goes in. */
      readonly input: (options: { readonly target: "draft-2020-12" }) => JsonObject;
    };
  };
}

/** The type of what a schema takes. */
export type SchemaInput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];

/** The type of what a schema gives. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Returns the findings as one line: `path: message; path: message`. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map((issue) => {
    const keys = (issue.path ?? []).map((part) => typeof part === "object" ? part.key : part);
    return `${keys.map(String).join(".") || "input"}: ${issue.message}`;
  }).join("; ");
}
