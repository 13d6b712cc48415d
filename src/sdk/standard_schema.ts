/**
 * Types of Standard Schema (standardschema.dev, version 1) with its JSON Schema extension. zod, Valibot,
 * ArkType and others implement it, so that the SDK depends on none of them for the type of a tool's input.
 */
import type { JsonObject } from "./json.ts";

/** An issue of a value. */
export interface StandardIssue {
  /** Description of the issue. */
  readonly message: string;
  /** Path to the value, outermost key first. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Result of a validation: a value, or issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** A schema of any library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Implementation of Standard Schema. */
  readonly "~standard": {
    /** Version of the protocol. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Static types; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Validates and converts. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Converts the schema to JSON Schema, if the library can. */
    readonly jsonSchema?: {
      /** Returns the schema of the input. */
      readonly input: (options: { readonly target: "draft-2020-12" }) => JsonObject;
    };
  };
}

/** Input type of a schema. */
export type SchemaInput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];

/** Output type of a schema. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Returns the issues as one line: `path: message; path: message`. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map((issue) => {
    const keys = (issue.path ?? []).map((part) => typeof part === "object" ? part.key : part);
    return `${keys.map(String).join(".") || "input"}: ${issue.message}`;
  }).join("; ");
}
