//! How a note and its summary lie in one file: the summary in a comment on the first line, then the content.
//!
//! Promise: [`split`] gives back what [`join`] was given, whatever the content begins with; a file without that line is all
//! content. One file, so that no crash leaves a content with another's summary. Source: CommonMark, "HTML blocks", kind 2:
//! such a comment is not shown.

use super::MAX_SUMMARY;
use crate::gate::services::wording;

const BEGIN: &str = "<!-- summary: ";
const END: &str = " -->";

/// The most bytes of the first line: every character of the longest summary has four.
pub const MAX_HEAD: usize = BEGIN.len() + 4 * MAX_SUMMARY + END.len() + 1;

/// The file of a note. The summary is one line.
pub fn join(summary: &str, content: &str) -> String {
    format!("{BEGIN}{summary}{END}\n{content}")
}

/// The summary and content in a file.
pub fn split(page: &str) -> (Option<&str>, &str) {
    let head = page.split_once('\n').and_then(|(line, rest)| {
        let summary = line.strip_prefix(BEGIN)?.strip_suffix(END)?;
        // A line somebody wrote by hand is no summary if it could not have been one.
        (wording::line(summary, MAX_SUMMARY).as_deref() == Some(summary)).then_some((Some(summary), rest))
    });
    head.unwrap_or((None, page))
}

/// What stands for the summary of a note that has none: its first line with words, without the marks of a heading.
pub fn first_words(content: &str) -> Option<String> {
    content.lines().find_map(|line| wording::line(line.trim_start_matches(['#', ' ']), MAX_SUMMARY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_without_the_line_is_all_content() {
        for page in
            ["", "# heading\n", "<!-- summary: x -->", "<!-- summary:  -->\n", "<!-- summary: a\u{202e} -->\nb", "\n"]
        {
            assert_eq!(split(page), (None, page));
        }
        assert_eq!(split("<!-- summary: x -->\n"), (Some("x"), ""));
        assert_eq!(split("<!-- summary: a --> b -->\nc"), (Some("a --> b"), "c"));
        assert_eq!(first_words("\n\n## Plans \nbuy milk"), Some("Plans".to_owned()));
        assert_eq!(first_words("\n \n"), None);
    }

    proptest! {
        #[test]
        fn what_was_joined_is_split_again(summary in any::<String>(), content in "(<!-- summary: x -->\n)?\\PC{0,20}|[\\x00-\\x20]{0,9}") {
            if let Some(summary) = wording::line(&summary, MAX_SUMMARY) {
                let page = join(&summary, &content);
                prop_assert_eq!(split(&page), (Some(summary.as_str()), content.as_str()));
                prop_assert!(page.len() - content.len() <= MAX_HEAD);
            }
        }
    }
}
