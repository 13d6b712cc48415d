/** Deno's kinds of permission, in the order of its documentation: plans, grants, guests and children speak of the same ones. */

/** The kinds. */
export const PERMISSION_KINDS = ["net", "read", "write", "env", "run", "sys", "ffi", "import"] as const;

/** One of them. */
export type PermissionKind = typeof PERMISSION_KINDS[number];
