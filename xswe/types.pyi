"""Generated from the table in types.py by tools/stubs.py."""

from xswe.alignment.beads import AlignConfig as AlignConfig
from xswe.alignment.dictionary import Dictionary as Dictionary, DictionaryConfig as DictionaryConfig, Entry as Entry
from xswe.alignment.documents import AlignedDocuments as AlignedDocuments, AlignedPair as AlignedPair, DocumentPair as DocumentPair, DocumentPairs as DocumentPairs
from xswe.alignment.link import BitextLinkConfig as BitextLinkConfig, LinkedBitext as LinkedBitext
from xswe.alignment.phrase_table import Phrase as Phrase, PhraseTable as PhraseTable
from xswe.alignment.phrases import FoundInFiles as FoundInFiles, PhraseSearchConfig as PhraseSearchConfig
from xswe.alignment.sentences import AlignedTexts as AlignedTexts, Bead as Bead
from xswe.alignment.term_check import AgreedTerm as AgreedTerm, TermCheck as TermCheck, TermCheckConfig as TermCheckConfig, TermFinding as TermFinding
from xswe.alignment.terms import BilingualTerm as BilingualTerm, BilingualTerms as BilingualTerms
from xswe.alignment.words import LinkConfig as LinkConfig, LinkedPair as LinkedPair, WordLinks as WordLinks
from xswe.bitext.convert import Rewritten as Rewritten
from xswe.corpus.bitext import CorpusConfig as CorpusConfig
from xswe.corpus.convert import ConvertedCorpus as ConvertedCorpus
from xswe.evaluation.ensembles import FittedEnsemble as FittedEnsemble
from xswe.evaluation.evaluate import Comparison as Comparison, Measured as Measured, PairedTest as PairedTest, Scores as Scores
from xswe.evaluation.metrics import Bootstrap as Bootstrap, Row as Row
from xswe.mining.dedup import DedupConfig as DedupConfig, Deduplicated as Deduplicated, Line as Line
from xswe.mining.filter import Filtered as Filtered, FilteredRecord as FilteredRecord
from xswe.mining.hard_rules import FilterConfig as FilterConfig
from xswe.mining.mined import MinedPairs as MinedPairs, Pair as Pair
from xswe.mining.negatives import HardNegatives as HardNegatives, Negatives as Negatives, NegativesConfig as NegativesConfig
from xswe.mining.pipeline import MineConfig as MineConfig, MineReport as MineReport
from xswe.mining.score import ScoreFileConfig as ScoreFileConfig, ScoredBitext as ScoredBitext
from xswe.mining.threshold import Threshold as Threshold
from xswe.mining.verdicts import BitextFilter as BitextFilter
from xswe.model.encode_file import EncodedFile as EncodedFile
from xswe.model.encoding import Neighbour as Neighbour, Neighbours as Neighbours
from xswe.model.ensemble import AnyModel as AnyModel, Ensemble as Ensemble
from xswe.model.export import ExportConfig as ExportConfig, Exported as Exported
from xswe.model.interchange import ImportConfig as ImportConfig
from xswe.model.static import StaticModel as StaticModel
from xswe.phrases.find import FoundPhrases as FoundPhrases
from xswe.phrases.search import SpanConfig as SpanConfig
from xswe.phrases.terms import FoundTerms as FoundTerms, Term as Term
from xswe.report.answers import Answers as Answers, FileSearchConfig as FileSearchConfig
from xswe.search.hits import Hit as Hit, Hits as Hits
from xswe.search.index import Index as Index
from xswe.search.lists import SearchConfig as SearchConfig
from xswe.serving.config import ServeConfig as ServeConfig
from xswe.teacher.protocol import TeacherConfig as TeacherConfig
from xswe.text.sentences import Sentence as Sentence, SplitText as SplitText
from xswe.training.config import TrainConfig as TrainConfig
from xswe.training.sweep import Sweep as Sweep, SweepPoint as SweepPoint
from xswe.training.train import TrainResult as TrainResult
from xswe.work.config import ExecutionConfig as ExecutionConfig
from xswe.work.status import StageStatus as StageStatus, WorkStatus as WorkStatus
