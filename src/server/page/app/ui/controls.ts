/** Characters that people do not see. */

/**
 * Invisible characters that change the order or the look of other text (Unicode TR36), but not tabs, line
 * breaks, and the joiners and signs that scripts and emoji need.
 */
export const CONTROLS = /(?![\t\n\r\u00ad\u0600-\u0605\u06dd\u070f\u08e2\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** Returns the name of a character: `U+202E`. */
export function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}
