//! Which calls each effect is, in which order, and what is left behind when one of them fails.

use std::sync::Arc;

use bytes::Bytes;
use strandline_core::{Effect, IoCause, IoOperation, JournalName, ReadRequest, SegmentId, Seq};

use crate::perform::Performer;
use crate::test_disk::{EIO, ENOSPC, Fault, TestDisk};

const SEGMENT: SegmentId = SegmentId(Seq::new(7));
const FILE: &str = "a-00000000000000000007.seg";

fn performer() -> (TestDisk, Performer<TestDisk>) {
    let disk = TestDisk::new();
    let performer = Performer::new(Arc::new(disk.clone()), JournalName::parse("a").unwrap());
    (disk, performer)
}

fn create(reserve: u64) -> Effect {
    Effect::Create { segment: SEGMENT, head: Bytes::from_static(b"HEAD"), reserve }
}

fn set_aside(offset: u64, len: u64) -> Effect {
    Effect::SetAside { segment: SEGMENT, offset, len }
}

fn head_and_zeros(len: usize) -> Vec<u8> {
    let mut bytes = b"HEAD".to_vec();
    bytes.resize(len, 0);
    bytes
}

#[test]
fn a_segment_appears_whole_and_durable() {
    let (disk, performer) = performer();
    performer.perform(&create(64)).unwrap();
    assert_eq!(
        disk.take_log(),
        [
            format!("create {FILE}.new-0"),
            format!("write {FILE}.new-0 0+4"),
            format!("zeros {FILE}.new-0 4+60"),
            format!("sync {FILE}.new-0"),
            format!("rename {FILE}.new-0 {FILE}"),
            "sync_directory".to_string(),
        ]
    );
    assert_eq!(disk.read(FILE), head_and_zeros(64));
}

#[test]
fn a_failed_create_names_its_stage_and_leaves_nothing() {
    for (call, code, operation, cause) in [
        ("create", ENOSPC, IoOperation::Open, IoCause::NoSpace),
        ("write", ENOSPC, IoOperation::Write, IoCause::NoSpace),
        ("zeros", EIO, IoOperation::Write, IoCause::Other),
        ("sync a", ENOSPC, IoOperation::Sync, IoCause::NoSpace),
        ("rename", ENOSPC, IoOperation::Rename, IoCause::NoSpace),
    ] {
        let (disk, performer) = performer();
        disk.inject(call, Fault::Error(code), 1);
        let failure = performer.perform(&create(64)).unwrap_err();
        assert_eq!(
            (failure.operation, failure.cause, failure.code),
            (operation, cause, Some(code)),
            "{call}"
        );
        assert_eq!(disk.names(), [""; 0], "{call}");
        performer.perform(&create(64)).unwrap();
        assert_eq!(disk.names(), [FILE], "{call}: the second try succeeds");
    }
}

/// The zeros are for speed. A nearly full disk, or one smaller than they are, still takes records.
#[test]
fn a_segment_is_created_without_zeros_where_they_find_no_space() {
    for spare in [0, 32] {
        let (disk, performer) = performer();
        if spare > 0 {
            performer.prepare_spare(spare).unwrap();
        }
        disk.inject("zeros", Fault::Short(7), 1);
        disk.inject("zeros", Fault::Error(ENOSPC), 1);
        performer.perform(&create(64)).unwrap();
        assert_eq!(disk.read(FILE), head_and_zeros(4), "{spare}");
        let zeros = Effect::Reserve { segment: SEGMENT, from: 64, to: 100 };
        performer.perform(&zeros).unwrap();
        assert_eq!(disk.read(FILE), head_and_zeros(100), "{spare}: what lies between reads as zeros");
    }
}

#[test]
fn a_failed_directory_sync_leaves_the_renamed_segment() {
    let (disk, performer) = performer();
    disk.inject("sync_directory", Fault::Error(EIO), 1);
    let failure = performer.perform(&create(64)).unwrap_err();
    assert_eq!(failure.operation, IoOperation::SyncDirectory);
    assert!(!failure.is_no_space());
    assert_eq!(disk.names(), [FILE]);
}

#[test]
fn short_and_interrupted_writes_go_on_and_empty_ones_fail() {
    const EINTR: i32 = 4;
    let (disk, performer) = performer();
    performer.perform(&create(4)).unwrap();
    disk.take_log();
    disk.inject("write", Fault::Short(3), 2);
    disk.inject("write", Fault::Error(EINTR), 1);
    let data = Bytes::from_static(b"0123456789");
    let write = Effect::Write { segment: SEGMENT, offset: 4, data };
    performer.perform(&write).unwrap();
    assert_eq!(disk.read(FILE), b"HEAD0123456789");
    assert_eq!(disk.take_log().len(), 4, "two short ones, an interrupted one, the rest");
    disk.inject("write", Fault::Short(0), 1);
    let failure = performer.perform(&write).unwrap_err();
    assert_eq!((failure.operation, failure.cause), (IoOperation::Write, IoCause::Other));
}

#[test]
fn the_active_segment_stays_open() {
    let (disk, performer) = performer();
    performer.perform(&create(4)).unwrap();
    // Whoever opened it again would not find it.
    std::fs::rename(disk.path().join(FILE), disk.path().join("moved")).unwrap();
    for offset in [4, 5, 6] {
        let data = Bytes::from_static(b"x");
        performer.perform(&Effect::Write { segment: SEGMENT, offset, data }).unwrap();
        performer.perform(&Effect::Sync { segment: SEGMENT }).unwrap();
    }
    assert_eq!(disk.read("moved"), b"HEADxxx");
}

#[test]
fn a_spare_becomes_the_segment() {
    let (disk, performer) = performer();
    performer.prepare_spare(64).unwrap();
    performer.prepare_spare(64).unwrap();
    assert_eq!(disk.names(), ["a.spare.new-0"], "there is never more than one");
    assert_eq!(performer.spare_bytes(), 64);
    disk.take_log();
    performer.perform(&create(64)).unwrap();
    assert_eq!(
        disk.take_log(),
        [
            "write a.spare.new-0 0+4".to_string(),
            "sync a.spare.new-0".to_string(),
            format!("rename a.spare.new-0 {FILE}"),
            "sync_directory".to_string(),
        ]
    );
    assert_eq!(disk.read(FILE), head_and_zeros(64));
}

#[test]
fn a_spare_of_another_length_is_fitted() {
    for reserve in [4_u64, 32, 100] {
        let (disk, performer) = performer();
        performer.prepare_spare(64).unwrap();
        performer.perform(&create(reserve)).unwrap();
        assert_eq!(disk.read(FILE), head_and_zeros(usize::try_from(reserve).unwrap()), "{reserve}");
    }
}

#[test]
fn without_space_the_spare_is_given_up() {
    let (disk, performer) = performer();
    performer.perform(&create(4)).unwrap();
    performer.prepare_spare(64).unwrap();
    disk.inject("write", Fault::Error(ENOSPC), 1);
    let data = Bytes::from_static(b"x");
    let failure = performer.perform(&Effect::Write { segment: SEGMENT, offset: 4, data }).unwrap_err();
    assert!(failure.is_no_space());
    assert_eq!(disk.names(), [FILE]);
}

#[test]
fn cut_bytes_are_kept_once() {
    let (disk, performer) = performer();
    disk.put(FILE, b"good bytes, torn bytes");
    performer.perform(&set_aside(12, 4)).unwrap();
    let copy = format!("{FILE}.torn-12");
    assert_eq!(disk.read(&copy), b"torn");
    assert_eq!(
        disk.take_log(),
        [
            format!("create {copy}.new-0"),
            format!("write {copy}.new-0 0+4"),
            format!("sync {copy}.new-0"),
            format!("rename {copy}.new-0 {copy}"),
            "sync_directory".to_string(),
        ]
    );
    performer.perform(&set_aside(12, 4)).unwrap();
    assert_eq!(disk.take_log(), ["sync_directory"], "the identical copy is reused");
    performer.perform(&set_aside(12, 10)).unwrap();
    assert_eq!(disk.names(), [FILE, &copy, &format!("{copy}.1")]);
    assert_eq!(disk.read(&copy), b"torn", "the first copy is untouched");
    performer.perform(&set_aside(12, 10)).unwrap();
    assert_eq!(disk.names().len(), 3);
}

#[test]
fn a_copy_longer_than_the_file_is_an_error() {
    let (disk, performer) = performer();
    disk.put(FILE, b"short");
    let failure = performer.perform(&set_aside(3, 10)).unwrap_err();
    assert_eq!((failure.operation, failure.cause), (IoOperation::Read, IoCause::EndOfFile));
    assert_eq!(disk.names(), [FILE]);
}

#[test]
fn what_is_gone_is_removed() {
    let (disk, performer) = performer();
    performer.perform(&create(4)).unwrap();
    disk.take_log();
    let remove = Effect::Remove { segment: SEGMENT };
    performer.perform(&remove).unwrap();
    performer.perform(&remove).unwrap();
    assert_eq!(disk.names(), [""; 0]);
    let once = [format!("remove {FILE}"), "sync_directory".to_string()];
    assert_eq!(disk.take_log(), [once.clone(), once].concat(), "the directory is synced either way");
    disk.inject("remove", Fault::Error(EIO), 1);
    assert_eq!(performer.perform(&remove).unwrap_err().operation, IoOperation::Remove);
}

#[test]
fn only_our_leftovers_are_removed() {
    let (disk, performer) = performer();
    let torn = format!("{FILE}.torn-4");
    let kept = [FILE, torn.as_str(), "b-00000000000000000007.seg.new-0", "b.spare.new-0", "notes.txt"];
    for name in kept {
        disk.put(name, "x");
    }
    for name in [&format!("{FILE}.new-3"), &format!("{FILE}.torn-4.new-1"), "a.spare.new-0"] {
        disk.put(name, "x");
    }
    std::fs::create_dir(disk.path().join(format!("{FILE}.new-5"))).unwrap();
    performer.perform(&Effect::RemoveTemporaries).unwrap();
    let mut expected: Vec<_> = kept.iter().map(ToString::to_string).collect();
    expected.push(format!("{FILE}.new-5"));
    expected.sort();
    assert_eq!(disk.names(), expected);
}

#[test]
fn a_leftover_of_the_same_name_is_passed_over() {
    let (disk, performer) = performer();
    disk.put(&format!("{FILE}.new-0"), "left by a crash");
    performer.perform(&create(8)).unwrap();
    assert_eq!(disk.read(FILE), head_and_zeros(8));
}

#[test]
fn reads_clip_at_the_end_and_truncates_set_it() {
    let (disk, performer) = performer();
    disk.put(FILE, b"0123456789");
    performer.perform(&Effect::Truncate { segment: SEGMENT, len: 6 }).unwrap();
    performer.perform(&Effect::Reserve { segment: SEGMENT, from: 6, to: 8 }).unwrap();
    let mut buffer = [b'-'; 8];
    let n = performer.read(ReadRequest { segment: SEGMENT, offset: 4, len: 6 }, &mut buffer).unwrap();
    assert_eq!((n, &buffer), (4, b"45\0\0----"));
    let missing = ReadRequest { segment: SegmentId(Seq::ZERO), offset: 0, len: 1 };
    let failure = performer.read(missing, &mut buffer).unwrap_err();
    assert_eq!((failure.operation, failure.cause), (IoOperation::Open, IoCause::NotFound));
}
